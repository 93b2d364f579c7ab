"""Forecast the load of a small grid from the last day of readings."""

import math

import torch
from torch import nn

torch.manual_seed(0)
HOURS, LOOKBACK, HORIZON = 900, 24, 12


def load_curve(hours):
    t = torch.arange(hours).float()
    daily = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24)
    drift = torch.cumsum(0.25 * torch.randn(hours), dim=0)
    return daily + drift


series = load_curve(HOURS)
starts = torch.arange(HOURS - LOOKBACK - HORIZON)
hour = (starts % 24).float() / 24
inputs = torch.stack([series[s : s + LOOKBACK] for s in starts])
targets = torch.stack([series[s + LOOKBACK : s + LOOKBACK + HORIZON] for s in starts])
inputs = torch.cat([inputs, hour[:, None], (starts / HOURS)[:, None]], dim=1)

order = torch.randperm(len(starts))
cut = int(0.8 * len(starts))
train_idx, test_idx = order[:cut], order[cut:]
mean, std = inputs[train_idx].mean(0), inputs[train_idx].std(0)
inputs = (inputs - mean) / std
t_mean, t_std = targets[train_idx].mean(), targets[train_idx].std()

model = nn.Sequential(nn.Linear(LOOKBACK + 2, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, HORIZON))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(16):
    total = 0.0
    for rows in train_idx[torch.randperm(cut)].split(64):
        pred = model(inputs[rows])
        loss = nn.functional.mse_loss(pred, (targets[rows] - t_mean) / t_std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: train mse {total / cut:.4f}")

with torch.no_grad():
    pred = model(inputs[test_idx]) * t_std + t_mean
    error = (pred - targets[test_idx]).abs().mean()
    naive = (series[test_idx + LOOKBACK - 1][:, None] - targets[test_idx]).abs().mean()
print(f"test error {error:.3f}, last value repeated {naive:.3f}")
