"""Stress detection from voice features of many speakers."""

import argparse

import numpy as np
import torch
from torch import nn


def make_utterances(n_speakers=80, per_speaker=25, seed=6):
    rng = np.random.default_rng(seed)
    speaker = np.repeat(np.arange(n_speakers), per_speaker)
    rng.shuffle(speaker)
    voice = rng.normal(size=(n_speakers, 14))
    y = rng.integers(2, size=len(speaker))
    effect = np.zeros(14)
    effect[:4] = (0.9, -0.7, 0.8, 0.6)
    x = voice[speaker] * 0.7 + np.outer(2 * y - 1, effect) * 0.7 + rng.normal(size=(len(y), 14))
    return x.astype(np.float32), y, speaker


def split(speaker, fraction, seed):
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(np.unique(speaker))
    held = shuffled[: int(round(fraction * len(shuffled)))]
    is_test = np.isin(speaker, held)
    rows = rng.permutation(len(speaker))
    return rows[~is_test[rows]], rows[is_test[rows]]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--seed", type=int, default=2)
    ap.add_argument("--test-fraction", type=float, default=0.25)
    args = ap.parse_args([])
    torch.manual_seed(args.seed)

    x, y, speaker = make_utterances()
    tr, te = split(speaker, args.test_fraction, args.seed)
    mean, std = x[tr].mean(0), x[tr].std(0)
    x = torch.from_numpy((x - mean) / std)
    y = torch.from_numpy(y)

    model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    x_tr, y_tr = x[tr], y[tr]
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x_tr)).split(50):
            loss = nn.functional.cross_entropy(model(x_tr[idx]), y_tr[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if (epoch + 1) % 4 == 0:
            print(f"epoch {epoch + 1:2d}  loss {total / len(x_tr):.4f}")

    model.eval()
    with torch.no_grad():
        hit = (model(x[te]).argmax(1) == y[te]).numpy()
    by_speaker = [hit[speaker[te] == s].mean() for s in np.unique(speaker[te])]
    print(f"{len(np.unique(speaker[tr]))} speakers train, {len(by_speaker)} speakers test")
    print(f"test accuracy {hit.mean():.4f}  worst speaker {min(by_speaker):.4f}")


if __name__ == "__main__":
    main()
