"""CTC with the blank as the last class and inputs of different length."""

import torch
import torch.nn as nn

torch.manual_seed(0)
SYMBOLS, DIM, BLANK = 6, 10, 6
code = 1.5 * torch.randn(SYMBOLS, DIM)


def example():
    length = int(torch.randint(2, 6, (1,)))
    label = torch.randint(SYMBOLS, (length,))
    frames = []
    for s in label:
        frames += [code[s]] * int(torch.randint(2, 4, (1,))) + [torch.zeros(DIM)] * int(torch.randint(1, 3, (1,)))
    x = torch.stack(frames)
    return x + 0.5 * torch.randn_like(x), label


def collate(rows):
    xs, labels = zip(*rows)
    x_len = torch.tensor([len(x) for x in xs])
    y_len = torch.tensor([len(y) for y in labels])
    return nn.utils.rnn.pad_sequence(xs), torch.cat(labels), x_len, y_len  # x is (time, batch, dim)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(DIM, 32, bidirectional=True)
        self.out = nn.Linear(64, SYMBOLS + 1)

    def forward(self, x, x_len):
        packed = nn.utils.rnn.pack_padded_sequence(x, x_len, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0])
        return self.out(h).log_softmax(-1)


def decode(log_probs, x_len):
    best = log_probs.argmax(-1)
    out = []
    for b in range(best.shape[1]):
        path = best[: x_len[b], b].unique_consecutive()
        out.append(path[path != BLANK].tolist())
    return out


train, test = [example() for _ in range(600)], [example() for _ in range(200)]
model = Recognizer()
ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    total = 0.0
    for idx in torch.randperm(len(train)).split(30):
        x, y, x_len, y_len = collate([train[i] for i in idx])
        loss = ctc(model(x, x_len), y, x_len, y_len)  # targets are one concatenated vector
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} ctc loss {total / 20:.4f}")

model.eval()
with torch.no_grad():
    x, _, x_len, _ = collate(test)
    decoded = decode(model(x, x_len), x_len)
exact = sum(d == y.tolist() for d, (_, y) in zip(decoded, test)) / len(test)
print(f"sequences read without error {exact:.3f}")
