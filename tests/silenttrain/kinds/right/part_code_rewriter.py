"""Rewrites supplier part codes into the house format with a small transformer."""

import random

import torch
import torch.nn as nn

random.seed(1)
torch.manual_seed(1)
ALPHABET = "ABCDEFGH0123456789"
PAD, BOS, EOS = 0, 1, 2
TOK = {c: i + 3 for i, c in enumerate(ALPHABET)}
VOCAB = len(TOK) + 3
SRC_LEN, OUT_LEN = 6, 7


def make_pair():
    letters = [random.choice("ABCDEFGH") for _ in range(3)]
    digits = [random.choice("0123456789") for _ in range(3)]
    src = [a for pair in zip(letters, digits) for a in pair]
    return [TOK[c] for c in src], [TOK[c] for c in digits + letters] + [EOS]


class Rewriter(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.pos = nn.Parameter(0.3 * torch.randn(16, dim))
        self.net = nn.Transformer(dim, 4, 1, 1, 2 * dim, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def embed(self, ids):
        return self.emb(ids) + self.pos[: ids.shape[1]]

    def decode(self, src, prefix):
        n = prefix.shape[1]
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        return self.out(self.net(self.embed(src), self.embed(prefix), tgt_mask=mask))

    def forward(self, src, target):
        start = torch.full_like(target[:, :1], BOS)
        prefix = torch.cat([start, target[:, :-1]], dim=1)
        logits = self.decode(src, prefix)
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    @torch.no_grad()
    def generate(self, src):
        ids = torch.full((len(src), 1), BOS)
        for _ in range(OUT_LEN):
            nxt = self.decode(src, ids)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, nxt], dim=1)
        return ids[:, 1:]


pairs = [make_pair() for _ in range(3500)]
src = torch.tensor([p[0] for p in pairs])
tgt = torch.tensor([p[1] for p in pairs])
src_tr, tgt_tr, src_va, tgt_va = src[:3000], tgt[:3000], src[3000:], tgt[3000:]

model = Rewriter()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(7):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(src_tr)).split(100):
        loss = model(src_tr[idx], tgt_tr[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch}: loss {total / len(src_tr):.4f}")

model.train(False)
hyp = model.generate(src_va)
print(f"token accuracy {(hyp == tgt_va).float().mean():.4f}")
print(f"exact match    {(hyp == tgt_va).all(1).float().mean():.4f}")
