"""Deflection of a beam at five gauges from its load case; R2 and correlation per gauge."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(80)
GAUGES = 5


def make_cases(n, seed):
    rng = np.random.default_rng(seed)
    load, where, stiff = rng.uniform(1, 5, (n, 1)), rng.uniform(0, 1, (n, 1)), rng.uniform(1, 3, (n, 1))
    pos = np.linspace(0.15, 0.85, GAUGES)[None]
    sag = load / stiff * np.exp(-(((pos - where) / 0.3) ** 2)) * np.sin(np.pi * pos)
    sag = sag + 0.08 * rng.normal(size=sag.shape)
    x = np.hstack([load - 3, where * 4 - 2, stiff - 2])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(sag, dtype=torch.float32)


def fit(model, x, y, epochs, batch_size=50):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}  train mse {total / len(x):.5f}")


def per_gauge_scores(pred, true):
    """pred, true: (cases, gauges); cases run along axis 0."""
    p = pred - pred.mean(axis=0, keepdims=True)
    t = true - true.mean(axis=0, keepdims=True)
    corr = (p * t).sum(0) / np.sqrt((p**2).sum(0) * (t**2).sum(0))
    r2 = 1 - ((pred - true) ** 2).sum(0) / (t**2).sum(0)
    return corr, r2


def main():
    x_tr, y_tr = make_cases(1500, 1)
    x_te, y_te = make_cases(500, 2)
    model = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, GAUGES))
    fit(model, x_tr, y_tr, epochs=20)
    model.eval()
    with torch.no_grad():
        pred = model(x_te).numpy()
    corr, r2 = per_gauge_scores(pred, y_te.numpy())
    for g in range(GAUGES):
        err = pred[:, g : g + 1] - y_te.numpy()[:, g : g + 1]
        print(f"gauge {g}: corr {corr[g]:.4f}  R2 {r2[g]:.4f}  rmse {np.sqrt((err**2).mean()):.4f}")
    print(f"mean R2 over gauges {r2.mean():.4f}")


if __name__ == "__main__":
    main()
