"""Melody continuation; perplexity over tunes of very different length."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(35)
NOTES, REST = 24, 0


def make_tune(rng):
    scale = np.array([0, 2, 4, 5, 7, 9, 11])
    key, pos = int(rng.integers(1, 12)), int(rng.integers(7))
    tune = []
    for _ in range(int(rng.integers(12, 70))):
        pos = int(np.clip(pos + rng.choice([-2, -1, 1, 2, 0], p=[0.1, 0.35, 0.35, 0.1, 0.1]), 0, 6))
        tune.append(1 + (key + int(scale[pos])) % (NOTES - 1))
    return torch.tensor(tune)


def batches(tunes, size, shuffle):
    order = torch.randperm(len(tunes)) if shuffle else torch.arange(len(tunes))
    for idx in order.split(size):
        yield pad_sequence([tunes[i] for i in idx], batch_first=True, padding_value=REST)


class MelodyLM(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(NOTES, dim, padding_idx=REST)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, NOTES)

    def forward(self, ids):
        return self.out(self.lstm(self.emb(ids))[0])


def nll(model, ids, reduction):
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(
        logits.reshape(-1, NOTES), ids[:, 1:].reshape(-1), ignore_index=REST, reduction=reduction
    )


@torch.no_grad()
def perplexity(model, tunes):
    model.eval()
    total, count = 0.0, 0
    for ids in batches(tunes, 30, False):
        total += nll(model, ids, "sum").item()
        count += (ids[:, 1:] != REST).sum().item()
    return math.exp(total / count)


def main():
    rng = np.random.default_rng(35)
    tunes = [make_tune(rng) for _ in range(760)]
    train, valid = tunes[:600], tunes[600:]
    model = MelodyLM()
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(8):
        model.train()
        total, count = 0.0, 0
        for ids in batches(train, 30, True):
            loss = nll(model, ids, "mean")
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            n = (ids[:, 1:] != REST).sum().item()
            total += loss.item() * n
            count += n
        print(f"epoch {epoch}: train ppl {math.exp(total / count):.3f}  valid ppl {perplexity(model, valid):.3f}")


if __name__ == "__main__":
    main()
