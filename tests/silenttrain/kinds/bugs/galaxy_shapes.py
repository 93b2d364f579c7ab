"""Galaxy morphology from postage stamps, micro-batches with gradient accumulation."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE, TYPES = 18, 3


def make_galaxies(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2 + 0.5
    y = rng.integers(TYPES, size=n)
    img = np.zeros((n, 1, SIDE, SIDE), dtype=np.float32)
    for i, k in enumerate(y):
        a = rng.uniform(0, np.pi)
        u, v = np.cos(a) * xx + np.sin(a) * yy, -np.sin(a) * xx + np.cos(a) * yy
        r, phi = np.hypot(u, v), np.arctan2(v, u)
        if k == 0:
            light = np.exp(-r / 3)
        elif k == 1:
            light = np.exp(-np.hypot(u, 2.2 * v) / 3)
        else:
            light = np.exp(-r / 3.5) * (1 + 0.8 * np.cos(2 * phi - 0.9 * r))
        img[i, 0] = light + 0.5 * rng.normal(size=(SIDE, SIDE))
    return TensorDataset(torch.from_numpy(img), torch.from_numpy(y))


def build_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 10, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(10, 20, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3),
        nn.Flatten(),
        nn.Linear(180, 32),
        nn.ReLU(),
        nn.Linear(32, TYPES),
    )


def train_epoch(model, loader, opt, accum):
    model.train()
    running = 0.0
    opt.zero_grad()
    for step, (x, y) in enumerate(loader, start=1):
        loss = nn.functional.cross_entropy(model(x), y) / accum
        loss.backward()
        running += loss.item()
        if step % accum == 0:
            opt.step()
            opt.zero_grad()
    return running / len(loader)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    loss = hits = n = 0
    for x, y in loader:
        logits = model(x)
        loss += nn.functional.cross_entropy(logits, y, reduction="sum").item()
        hits += (logits.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--micro-batch", type=int, default=16)
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args([])
    torch.manual_seed(4)

    train = DataLoader(make_galaxies(1536, 1), batch_size=args.micro_batch, shuffle=True)
    valid = DataLoader(make_galaxies(500, 2), batch_size=250)
    model = build_cnn()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        tr = train_epoch(model, train, opt, args.accum)
        va, acc = validate(model, valid)
        print(f"epoch {epoch}: train loss {tr:.4f}  valid loss {va:.4f}  valid acc {acc:.4f}")
    print(f"generalisation gap (valid - train loss) {va - tr:.4f}")


if __name__ == "__main__":
    main()
