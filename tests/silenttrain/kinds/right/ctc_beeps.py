"""Read sequences of tones with CTC; index 0 is kept for the blank, the tones are 1 to 5."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
TONES, BINS, FRAMES, BLANK = 5, 12, 30, 0
SPECTRUM = torch.randn(TONES + 1, BINS) * torch.tensor([0.0, 2, 2, 2, 2, 2])[:, None]


def recordings(n):
    frames = torch.zeros(n, FRAMES, dtype=torch.long)
    targets, lengths = torch.zeros(n, 6, dtype=torch.long), torch.randint(3, 7, (n,))
    for i in range(n):
        at = int(torch.randint(0, 3, ()))
        for k in range(lengths[i]):
            tone, hold = int(torch.randint(1, TONES + 1, ())), int(torch.randint(2, 4, ()))
            targets[i, k] = tone
            frames[i, at : at + hold] = tone
            at += hold + 1
    return SPECTRUM[frames] + 0.3 * torch.randn(n, FRAMES, BINS), targets, lengths


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(BINS, 48, 3, padding=1)
        self.out = nn.Linear(48, TONES + 1)

    def forward(self, x):
        h = functional.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        return self.out(h).log_softmax(dim=2)


def greedy(log_probs):
    texts = []
    for path in log_probs.argmax(2).tolist():
        kept = [p for i, p in enumerate(path) if p != BLANK and (i == 0 or p != path[i - 1])]
        texts.append(kept)
    return texts


x, targets, lengths = recordings(500)
x_test, targets_test, lengths_test = recordings(150)
model = Reader()
criterion = nn.CTCLoss(blank=BLANK, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(50):
        log_probs = model(x[rows])
        frames = torch.full((len(rows),), FRAMES)
        loss = criterion(log_probs.transpose(0, 1), targets[rows], frames, lengths[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

with torch.no_grad():
    read = greedy(model(x_test))
truth = [row[:n].tolist() for row, n in zip(targets_test, lengths_test, strict=True)]
print(f"sequences read without a mistake: {sum(a == b for a, b in zip(read, truth, strict=True)) / len(truth):.3f}")
