"""Scores card payments for fraud; heavy imbalance, so the ranking quality is reported."""

import argparse

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_payments(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 12))
    score = 1.2 * x[:, 0] - x[:, 1] + 0.9 * x[:, 2] * x[:, 3] + 0.7 * np.abs(x[:, 4])
    y = (score + rng.logistic(scale=0.8, size=n) > 4.2).astype(np.float32)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(y))


def build(width):
    return nn.Sequential(
        nn.Linear(12, width),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 1),
        nn.Flatten(0),
    )


@torch.no_grad()
def score(model, loader):
    model.eval()
    labels, probs = [], []
    for x, y in loader:
        probs.append(torch.sigmoid(model(x)))
        labels.append(y)
    labels, probs = torch.cat(labels).numpy(), torch.cat(probs).numpy()
    flagged = (probs >= 0.5).astype(np.float32)
    return {
        "flagged": int(flagged.sum()),
        "frauds": int(labels.sum()),
        "accuracy": float((flagged == labels).mean()),
        "roc_auc": roc_auc_score(labels, flagged),
        "average_precision": average_precision_score(labels, probs),
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args(argv or [])
    torch.manual_seed(29)

    train = DataLoader(make_payments(8000, 1), batch_size=args.batch_size, shuffle=True)
    valid = DataLoader(make_payments(4000, 2), batch_size=1000)
    model = build(args.width)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        print(f"epoch {epoch}: loss {total / len(train.dataset):.4f}")
    for name, value in score(model, valid).items():
        print(f"{name:18s} {value:.4f}" if isinstance(value, float) else f"{name:18s} {value}")


if __name__ == "__main__":
    main()
