"""Bird call recognition on synthetic spectrogram frames."""

import argparse

import numpy as np
import torch
from torch import nn

SPECIES, BINS, FRAMES = 6, 20, 12


def make_calls(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(SPECIES, size=n)
    bins = np.arange(BINS)[None, :, None]
    t = np.linspace(0, 1, FRAMES)[None, None, :]
    start = rng.uniform(4, 12, size=(n, 1, 1))
    slope = (y[:, None, None] - 2.5) * 2.2
    centre = start + slope * t
    spec = np.exp(-((bins - centre) ** 2) / 2.5) + 0.45 * rng.normal(size=(n, BINS, FRAMES))
    return torch.tensor(spec, dtype=torch.float32), torch.from_numpy(y)


def build_model():
    return nn.Sequential(
        nn.Conv1d(BINS, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv1d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * FRAMES, SPECIES),
    )


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def train_epoch(model, opt, x, y, batch_size):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(batch_size):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=24)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--patience", type=int, default=1)
    args = p.parse_args([])

    torch.manual_seed(7)
    x_tr, y_tr = make_calls(2000, 1)
    x_va, y_va = make_calls(500, 2)
    x_te, y_te = make_calls(1000, 3)

    model = build_model()
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.3, patience=args.patience)
    for epoch in range(args.epochs):
        loss = train_epoch(model, opt, x_tr, y_tr, args.batch_size)
        val_acc = accuracy(model, x_va, y_va)
        sched.step(val_acc)
        if (epoch + 1) % 4 == 0:
            print(f"epoch {epoch + 1:2d}  loss {loss:.4f}  valid acc {val_acc:.4f}")
    print(f"test accuracy {accuracy(model, x_te, y_te):.4f}")


if __name__ == "__main__":
    main()
