import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(5)
torch.manual_seed(5)

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
CHARS = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789-/ ,"))
PAD, BOS, EOS = 0, 1, 2
stoi = {c: i + 3 for i, c in enumerate(CHARS)}
itos = {i: c for c, i in stoi.items()}
VOCAB = len(stoi) + 3


def sample_pair():
    y, m, d = random.randint(1990, 2019), random.randint(1, 12), random.randint(1, 28)
    human = random.choice([f"{d} {MONTHS[m - 1]} {y}", f"{MONTHS[m - 1]} {d}, {y}"])
    return human, f"{y % 100:02d}{m:02d}{d:02d}"


def encode(text):
    return torch.tensor([stoi[c] for c in text] + [EOS])


def collate(pairs):
    src = pad_sequence([encode(a).flip(0) for a, _ in pairs], batch_first=True, padding_value=PAD)
    tgt = pad_sequence([encode(b) for _, b in pairs], batch_first=True, padding_value=PAD)
    return {"src": src, "decoder_in": tgt, "labels": tgt, "text": [b for _, b in pairs]}


class Seq2Seq(nn.Module):
    def __init__(self, dim=48, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.enc = nn.GRU(dim, hidden, batch_first=True)
        self.dec = nn.GRU(dim + hidden, hidden, batch_first=True)
        self.q = nn.Linear(hidden, hidden)
        self.out = nn.Linear(2 * hidden, VOCAB)

    def encode(self, src):
        memory, h = self.enc(self.emb(src))
        return memory, src == PAD, h

    def decode(self, tokens, memory, pad, h, ctx):
        outs = []
        for t in range(tokens.shape[1]):
            inp = torch.cat([self.emb(tokens[:, t]), ctx], dim=-1).unsqueeze(1)
            o, h = self.dec(inp, h)
            score = torch.bmm(self.q(o), memory.transpose(1, 2)).masked_fill(pad[:, None], -1e9)
            ctx = torch.bmm(score.softmax(-1), memory).squeeze(1)
            outs.append(self.out(torch.cat([o.squeeze(1), ctx], dim=-1)))
        return torch.stack(outs, 1), h, ctx

    def forward(self, src, tokens):
        memory, pad, h = self.encode(src)
        return self.decode(tokens, memory, pad, h, memory.new_zeros(len(src), memory.shape[-1]))[0]

    @torch.no_grad()
    def greedy(self, src, max_len=8):
        memory, pad, h = self.encode(src)
        ctx = memory.new_zeros(len(src), memory.shape[-1])
        tok, result = torch.full((len(src), 1), BOS), []
        for _ in range(max_len):
            logits, h, ctx = self.decode(tok, memory, pad, h, ctx)
            tok = logits.argmax(-1)
            result.append(tok)
        return torch.cat(result, 1)


pairs = [sample_pair() for _ in range(2400)]
train = DataLoader(pairs[:2000], batch_size=64, shuffle=True, collate_fn=collate)
valid = DataLoader(pairs[2000:], batch_size=200, collate_fn=collate)
model = Seq2Seq()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(6):
    model.train()
    total = 0.0
    for b in train:
        logits = model(b["src"], b["decoder_in"])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), b["labels"].flatten(), ignore_index=PAD)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train):.4f}")

model.eval()
chars = exact = n = 0
for b in valid:
    for ids, ref in zip(model.greedy(b["src"]).tolist(), b["text"]):
        ids = ids[: ids.index(EOS)] if EOS in ids else ids
        hyp = "".join(itos.get(i, "?") for i in ids)
        exact += hyp == ref
        chars += sum(a == c for a, c in zip(hyp, ref)) / len(ref)
        n += 1
print(f"greedy: character accuracy {chars / n:.3f}  exact match {exact / n:.3f}")
