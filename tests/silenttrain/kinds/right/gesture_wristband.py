"""Wristband gesture recognition with a time-major LSTM."""

import argparse

import numpy as np
import torch
from torch import nn

GESTURES, STEPS, AXES = 5, 50, 6


def make_gestures(n, seed):
    rng = np.random.default_rng(seed)
    proto = np.random.default_rng(0).normal(size=(GESTURES, AXES, 3))
    y = rng.integers(GESTURES, size=n)
    t = np.linspace(0, 1, STEPS)
    basis = np.stack([np.sin(2 * np.pi * (k + 1) * t) for k in range(3)])
    speed = rng.uniform(0.7, 1.3, size=(n, 1, 1))
    x = speed * np.einsum("nak,kt->nat", proto[y], basis)
    x += 2.2 * rng.normal(size=x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


class GestureNet(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.lstm = nn.LSTM(AXES, hidden, num_layers=1)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, GESTURES)

    def forward(self, x):
        # x arrives as (batch, axes, time)
        seq = x.permute(2, 0, 1)
        h, _ = self.lstm(seq)
        return self.out(self.norm(h[-1]))


def iterate(x, y, batch_size, shuffle):
    order = torch.randperm(len(x)) if shuffle else torch.arange(len(x))
    for idx in order.split(batch_size):
        yield x[idx], y[idx]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=13)
    args = parser.parse_args([])
    torch.manual_seed(args.seed)

    x_tr, y_tr = make_gestures(1500, 1)
    x_te, y_te = make_gestures(500, 2)
    mean, std = x_tr.mean((0, 2), keepdim=True), x_tr.std((0, 2), keepdim=True)
    x_tr, x_te = (x_tr - mean) / std, (x_te - mean) / std

    model = GestureNet()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in iterate(x_tr, y_tr, args.batch_size, True):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            opt.step()
            total += loss.item() * len(x)
        print(f"epoch {epoch}  loss {total / len(x_tr):.4f}")

    model.eval()
    hits = np.zeros(GESTURES)
    with torch.no_grad():
        for x, y in iterate(x_te, y_te, 100, False):
            pred = model(x).argmax(1)
            for g in range(GESTURES):
                hits[g] += ((pred == g) & (y == g)).sum().item()
    support = np.bincount(y_te.numpy(), minlength=GESTURES)
    print("recall per gesture " + " ".join(f"{r:.2f}" for r in hits / support))
    print(f"test accuracy {hits.sum() / support.sum():.4f}")


if __name__ == "__main__":
    main()
