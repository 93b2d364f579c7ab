"""Wafer map defects with cosine restarts; the cycle ends are averaged into an ensemble."""

import copy

import numpy as np
import torch
from torch import nn

torch.manual_seed(5)
CLASSES, SIDE, CYCLE, CYCLES = 4, 14, 4, 3


def make_wafers(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = (np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2 + 0.5) / (SIDE / 2)
    rad, y = np.hypot(xx, yy), rng.integers(CLASSES, size=n)
    maps = np.zeros((n, 1, SIDE, SIDE), dtype=np.float32)
    for i, c in enumerate(y):
        a = rng.uniform(0, 2 * np.pi)
        line = np.abs(np.cos(a) * xx + np.sin(a) * yy - rng.uniform(-0.3, 0.3))
        blob = np.hypot(xx - 0.5 * np.cos(a), yy - 0.5 * np.sin(a))
        prob = [
            0 * rad,
            np.exp(-(((rad - 0.85) / 0.12) ** 2)),
            np.exp(-((line / 0.12) ** 2)),
            np.exp(-((blob / 0.3) ** 2)),
        ][c]
        maps[i, 0] = rng.random((SIDE, SIDE)) < 0.12 + 0.55 * prob
    return torch.from_numpy(maps), torch.from_numpy(y)


def net():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 49, CLASSES),
    )


class SnapshotTrainer:
    def __init__(self, model, lr=0.05, batch_size=50):
        self.model, self.batch_size = model, batch_size
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(self.opt, T_0=CYCLE)
        self.snapshots = []

    def fit(self, x, y):
        for epoch in range(CYCLE * CYCLES):
            self.model.train()
            batches = torch.randperm(len(x)).split(self.batch_size)
            total = 0.0
            for i, idx in enumerate(batches):
                loss = nn.functional.cross_entropy(self.model(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.sched.step(epoch + (i + 1) / len(batches))
                total += loss.item() * len(idx)
            if (epoch + 1) % CYCLE == 0:
                self.snapshots.append(copy.deepcopy(self.model).eval())
                print(f"cycle {len(self.snapshots)} ends: loss {total / len(x):.4f}")

    @torch.no_grad()
    def predict(self, x):
        return torch.stack([m(x).softmax(-1) for m in self.snapshots]).mean(0)


if __name__ == "__main__":
    x_tr, y_tr = make_wafers(1500, 1)
    x_te, y_te = make_wafers(600, 2)
    trainer = SnapshotTrainer(net())
    trainer.fit(x_tr, y_tr)
    with torch.no_grad():
        single = (trainer.snapshots[-1](x_te).argmax(1) == y_te).float().mean()
    ensemble = (trainer.predict(x_te).argmax(1) == y_te).float().mean()
    print(f"last snapshot accuracy {single:.4f}  ensemble accuracy {ensemble:.4f}")
