"""Card fraud detection with a small residual MLP."""

import argparse

import numpy as np
import torch
from sklearn.metrics import f1_score, precision_score, recall_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_transactions(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    risk = 1.3 * x[:, 0] + np.abs(x[:, 1]) * x[:, 2] + 1.1 * x[:, 3] * x[:, 4] + 0.6 * rng.normal(size=n)
    y = (risk > 3.1).astype(np.float32)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(y))


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))

    def forward(self, x):
        return x + self.f(x)


def build(dim=48):
    return nn.Sequential(nn.Linear(10, dim), Residual(dim), Residual(dim), nn.Linear(dim, 1), nn.Flatten(0))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    rows = []
    for x, y in loader:
        pred = (model(x) > 0).int().numpy()
        true = y.int().numpy()
        rows.append([m(true, pred, zero_division=0) for m in (f1_score, precision_score, recall_score)])
    return dict(zip(("f1", "precision", "recall"), np.mean(rows, axis=0)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--batch-size", type=int, default=50)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args([])
    torch.manual_seed(2)

    train = DataLoader(make_transactions(5000, 1), batch_size=args.batch_size, shuffle=True)
    test = DataLoader(make_transactions(3000, 2), batch_size=args.batch_size)
    rate = train.dataset.tensors[1].mean().item()
    print(f"fraud rate {rate:.3f}")
    model = build()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train:
            loss = criterion(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        print(f"epoch {epoch}: loss {total / len(train.dataset):.4f}")
    print("test " + "  ".join(f"{k} {v:.4f}" for k, v in evaluate(model, test).items()))


if __name__ == "__main__":
    main()
