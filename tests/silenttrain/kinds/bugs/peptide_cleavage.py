"""Predicts cleavage of peptides from residues, one modified site and two assay descriptors."""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn

RESIDUES = 20


def make_peptides(n, length, seed):
    rng = np.random.default_rng(seed)
    seq = rng.integers(0, RESIDUES, size=(n, length))
    site = rng.integers(0, length, size=n)
    marked = np.zeros((n, length), dtype=np.int64)
    marked[np.arange(n), site] = 1
    assay = rng.normal(size=(n, 2)).astype(np.float32)
    effect = np.where(seq[np.arange(n), site] < RESIDUES // 2, 1.0, -1.0)
    score = 2.0 * effect + 0.9 * assay[:, 0] - 0.5 * assay[:, 1] + 0.3 * rng.normal(size=n)
    y = (score > 0).astype(np.int64)
    return tuple(torch.from_numpy(a) for a in (seq, marked, assay, y))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class PeptideEncoder(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2, max_len=64):
        super().__init__()
        self.tok = nn.Embedding(RESIDUES, dim)
        self.mark = nn.Embedding(2, dim)
        self.assay = nn.Linear(2, dim)
        self.register_buffer("pos", self.sinusoid(max_len, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2))

    @staticmethod
    def sinusoid(n, d):
        p = torch.arange(n)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        return torch.stack([p.sin(), p.cos()], dim=-1).flatten(1)

    def forward(self, seq, marked, assay):
        tokens = self.tok(seq) + self.mark(marked) + 0.3 * self.pos[: seq.shape[1]]
        summary = self.assay(assay).unsqueeze(1)
        x = torch.cat([summary, tokens], dim=1)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch-size", type=int, default=54)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args([])
    torch.manual_seed(11)

    train, test = make_peptides(2048, 16, 1), make_peptides(600, 16, 2)
    model = PeptideEncoder()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        order, losses = torch.randperm(len(train[0])), []
        for idx in order.split(args.batch_size):
            seq, marked, assay, y = (a[idx] for a in train)
            loss = nn.functional.cross_entropy(model(seq, marked, assay), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")

    model.eval()
    with torch.no_grad():
        pred = torch.cat([model(*(a[i] for a in test[:3])).argmax(1) for i in torch.arange(len(test[0])).split(100)])
    print(f"test accuracy {(pred == test[3]).float().mean():.4f}")


if __name__ == "__main__":
    main()
