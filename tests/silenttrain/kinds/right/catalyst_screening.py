"""Catalyst activity from composition, with gradient accumulation over micro-batches."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_catalysts(n, seed):
    rng = np.random.default_rng(seed)
    comp = rng.dirichlet(np.ones(6), size=n)
    temp = rng.uniform(-1, 1, size=(n, 1))
    x = np.hstack([comp * 3, temp])
    y = 4 * comp[:, 0] * comp[:, 1] * 3 + np.tanh(3 * comp[:, 2] - temp[:, 0]) - 2 * comp[:, 3] ** 2
    y = y + 0.1 * rng.normal(size=n)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y[:, None], dtype=torch.float32))


def train_epoch(model, loader, opt, accum):
    model.train()
    running, rows = 0.0, 0
    opt.zero_grad()
    for step, (x, y) in enumerate(loader, start=1):
        loss = nn.functional.mse_loss(model(x), y) / accum
        loss.backward()
        running += loss.item() * accum * len(x)
        rows += len(x)
        if step % accum == 0:
            opt.step()
            opt.zero_grad()
    return running / rows


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    sq = ab = rows = 0
    for x, y in loader:
        err = model(x) - y
        sq += err.pow(2).sum().item()
        ab += err.abs().sum().item()
        rows += len(y)
    return sq / rows, ab / rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--micro-batch", type=int, default=20)
    ap.add_argument("--accum", type=int, default=5)
    ap.add_argument("--lr", type=float, default=5e-3)
    args = ap.parse_args([])
    torch.manual_seed(27)
    train = DataLoader(make_catalysts(2000, 1), batch_size=args.micro_batch, shuffle=True)
    valid = DataLoader(make_catalysts(690, 2), batch_size=200)
    model = nn.Sequential(nn.Linear(7, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        tr = train_epoch(model, train, opt, args.accum)
        va, mae = evaluate(model, valid)
        if (epoch + 1) % 3 == 0:
            print(f"epoch {epoch + 1:2d}  train mse {tr:.4f}  valid mse {va:.4f}")
    print(f"valid rmse {va**0.5:.4f}  mae {mae:.4f}")


if __name__ == "__main__":
    main()
