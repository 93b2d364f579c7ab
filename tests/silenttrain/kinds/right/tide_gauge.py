"""One-step forecast of the surge at a tide gauge; scores in standard deviations and in centimetres."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(71)
LAGS = 12


def surge_record(n=2600, seed=71):
    rng = np.random.default_rng(seed)
    wind = np.zeros(n)
    surge = np.zeros(n)
    for t in range(2, n):
        wind[t] = 0.9 * wind[t - 1] + rng.normal()
        surge[t] = 0.75 * surge[t - 1] + 6 * np.tanh(0.5 * wind[t - 1]) + 1.5 * rng.normal()
    return np.stack([surge, wind], axis=1)


class Standardiser:
    def __init__(self, a):
        self.mean, self.std = a.mean(axis=0), a.std(axis=0)

    def __call__(self, a):
        return (a - self.mean) / self.std

    def length_back(self, d, column):
        """Differences need the scale only, the mean drops out."""
        return d * self.std[column]


def windows(a):
    x = np.stack([a[t - LAGS : t].ravel() for t in range(LAGS, len(a))])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(a[LAGS:, 0], dtype=torch.float32)


record = surge_record()
past, future = record[:2000], record[2000:]
scaler = Standardiser(past)
x_tr, y_tr = windows(scaler(past))
x_te, y_te = windows(scaler(future))

model = nn.Sequential(nn.Linear(2 * LAGS, 48), nn.Tanh(), nn.Linear(48, 1), nn.Flatten(0))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(30):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x_tr)).split(50):
        loss = nn.functional.mse_loss(model(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if (epoch + 1) % 10 == 0:
        print(f"epoch {epoch + 1}: train mse {total / len(x_tr):.4f} (standardised)")

model.eval()
with torch.no_grad():
    diff = (model(x_te) - y_te).numpy()
persist = (x_te[:, -2] - y_te).numpy()
rmse, rmse_persist = np.sqrt((diff**2).mean()), np.sqrt((persist**2).mean())
print(f"test RMSE, in standard deviations of the surge: {rmse:.4f}")
print(f"test RMSE {scaler.length_back(rmse, 0):.2f} cm   persistence {scaler.length_back(rmse_persist, 0):.2f} cm")
print(f"skill against persistence {1 - (rmse / rmse_persist) ** 2:.4f}")
