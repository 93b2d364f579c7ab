"""Churn scores for a telecom; area under the curve from ranks, without scikit-learn."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(81)


def customers(n, seed):
    rng = np.random.default_rng(seed)
    tenure, calls = rng.gamma(2, 12, n), rng.poisson(1.5, n)
    bill, contract = rng.normal(45, 15, n), rng.integers(0, 3, n)
    z = -0.05 * tenure + 0.6 * calls + 0.03 * (bill - 45) * (contract == 0) - 0.8 * contract - 0.6
    y = (z + rng.logistic(size=n) > 0).astype(np.float32)
    x = np.stack([tenure / 20 - 1, calls - 1.5, (bill - 45) / 15, contract == 0, contract == 1], axis=1)
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


def average_ranks(v):
    order = np.argsort(v, kind="stable")
    ranks = np.empty(len(v))
    ranks[order] = np.arange(1, len(v) + 1)
    uniq, inverse, count = np.unique(v, return_inverse=True, return_counts=True)
    return (np.bincount(inverse, weights=ranks) / count)[inverse]


def auc(score, label):
    pos = label == 1
    n_pos, n_neg = pos.sum(), (~pos).sum()
    u = average_ranks(score)[pos].sum() - n_pos * (n_pos + 1) / 2
    return u / (n_pos * n_neg)


def fit(model, x, y, epochs, batch_size=64, lr=3e-3):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    weight = (y == 0).sum() / (y == 1).sum()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[idx]).squeeze(-1), y[idx], pos_weight=weight)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch}: weighted loss {total / len(x):.4f}")


def main():
    x_tr, y_tr = customers(3000, 1)
    x_te, y_te = customers(1500, 2)
    model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    fit(model, x_tr, y_tr, epochs=8)
    model.eval()
    with torch.no_grad():
        logit = model(x_te).squeeze(-1).numpy()
    label = y_te.numpy().astype(int)
    flag = logit > 0
    print(f"churn rate {label.mean():.3f}  flagged {flag.mean():.3f}")
    print(f"AUC {auc(logit, label):.4f}")
    print(f"recall {flag[label == 1].mean():.4f}  specificity {(~flag[label == 0]).mean():.4f}")


if __name__ == "__main__":
    main()
