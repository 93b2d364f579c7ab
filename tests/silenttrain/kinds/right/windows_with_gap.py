"""Sliding windows over river levels; a gap of one window separates the training part from the test part."""

import math

import torch
from torch import nn

torch.manual_seed(12)
DAYS, WINDOW, AHEAD = 1200, 20, 3


def river(days):
    season = torch.sin(2 * math.pi * torch.arange(days) / 90)
    rain = (torch.rand(days) < 0.15).float() * torch.rand(days) * 2
    level = torch.zeros(days)
    for d in range(1, days):
        level[d] = 0.9 * level[d - 1] + 0.1 * season[d] + 0.3 * rain[d - 1]
    return level + 0.02 * torch.randn(days), rain


def windows(begin, end):
    starts = torch.arange(begin, end - WINDOW - AHEAD + 1)
    index = starts[:, None] + torch.arange(WINDOW)[None]
    return torch.cat([level[index], rain[index]], dim=1), level[starts + WINDOW + AHEAD - 1]


level, rain = river(DAYS)
split = int(0.75 * DAYS)
x_train, y_train = windows(0, split)
x_test, y_test = windows(split + WINDOW + AHEAD, DAYS)
mean, std = level[:split].mean(), level[:split].std()
x_mean, x_std = x_train.mean(0), x_train.std(0)
x_train, x_test = (x_train - x_mean) / x_std, (x_test - x_mean) / x_std

net = nn.Sequential(nn.Linear(2 * WINDOW, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(14):
    for rows in torch.randperm(len(x_train)).split(80):
        loss = nn.functional.mse_loss(net(x_train[rows]).squeeze(1), (y_train[rows] - mean) / std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 1:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

with torch.no_grad():
    pred = net(x_test).squeeze(1) * std + mean
persistence = (level[split + WINDOW + AHEAD + WINDOW - 1 : DAYS - AHEAD] - y_test).pow(2).mean().sqrt()
print(f"test rmse {(pred - y_test).pow(2).mean().sqrt():.4f}, persistence {persistence:.4f}, {len(y_test)} windows")
