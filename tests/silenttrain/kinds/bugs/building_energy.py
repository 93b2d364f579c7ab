"""Daily electricity use of office buildings, in kWh."""

import argparse

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn


def make_days(n, seed):
    rng = np.random.default_rng(seed)
    area = rng.uniform(0.5, 4.0, n)
    occupancy = rng.uniform(0, 1, n)
    outdoor = rng.normal(12, 9, n)
    weekend = rng.random(n) < 2 / 7
    use = 30 * area + 55 * area * occupancy * ~weekend + 3.5 * np.abs(outdoor - 16) * np.sqrt(area)
    use = use + 12 * rng.normal(size=n)
    x = np.stack([area, occupancy, outdoor, weekend], 1)
    return x, use[:, None]


class UsageModel(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x)


def tensor(a):
    return torch.tensor(a, dtype=torch.float32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--width", type=int, default=48)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--batch-size", type=int, default=64)
    args = ap.parse_args([])
    torch.manual_seed(66)

    x_tr, y_tr = make_days(2500, 1)
    x_te, y_te = make_days(800, 2)
    x_scaler, y_scaler = StandardScaler().fit(x_tr), StandardScaler().fit(y_tr)
    x_train, y_train = tensor(x_scaler.transform(x_tr)), tensor(y_scaler.transform(y_tr))
    x_test, y_test = tensor(x_scaler.transform(x_te)), tensor(y_scaler.transform(y_te))

    model = UsageModel(args.width)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x_train)).split(args.batch_size):
            loss = nn.functional.mse_loss(model(x_train[idx]), y_train[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}  train loss {total / len(x_train):.4f}")

    model.eval()
    with torch.no_grad():
        err = model(x_test) - y_test
    rmse = err.pow(2).mean().sqrt().item()
    mae = err.abs().mean().item()
    print(f"mean daily use {y_te.mean():.1f} kWh")
    print(f"test RMSE {rmse:.2f} kWh   MAE {mae:.2f} kWh   worst day {err.abs().max().item():.2f} kWh")


if __name__ == "__main__":
    main()
