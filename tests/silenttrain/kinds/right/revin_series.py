"""Forecasting of a drifting series with per-window (reversible instance) normalisation."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class RevIN(nn.Module):
    """Each window is scaled by its own moments; the forecast is put back by the same."""

    def forward(self, x):
        self.mean = x.mean(1, keepdim=True)
        self.std = x.std(1, keepdim=True) + 1e-5
        return (x - self.mean) / self.std

    def inverse(self, y):
        return y * self.std + self.mean


class Forecaster(nn.Module):
    def __init__(self, window, horizon):
        super().__init__()
        self.norm = RevIN()
        self.net = nn.Sequential(nn.Linear(window, 64), nn.ReLU(), nn.Linear(64, horizon))

    def forward(self, x):
        return self.norm.inverse(self.net(self.norm(x)))


class Experiment:
    def __init__(self, series, cut, window=48, horizon=12):
        self.window, self.horizon = window, horizon
        self.train, self.test = self.cut_windows(series[:cut]), self.cut_windows(series[cut:])
        self.model = Forecaster(window, horizon)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def cut_windows(self, s):
        w = s.unfold(0, self.window + self.horizon, 2)
        return w[:, : self.window], w[:, self.window :]

    def fit(self, epochs=20):
        x, y = self.train
        for epoch in range(epochs):
            total = 0.0
            for idx in torch.randperm(len(x)).split(64):
                pred = self.model(x[idx])
                scale = self.model.norm.std  # error relative to the level of the window
                loss = ((pred - y[idx]) / scale).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(idx)
            if epoch % 5 == 0:
                print(f"epoch {epoch} relative mse {total / len(x):.4f}")

    @torch.no_grad()
    def report(self):
        x, y = self.test
        pred = self.model(x)
        last = x[:, -1:].expand_as(y)
        print(f"train level {self.train[0].mean().item():.1f}, test level {x.mean().item():.1f}")
        print(f"test mae {F.l1_loss(pred, y).item():.3f}, last-value forecast {F.l1_loss(last, y).item():.3f}")


torch.manual_seed(0)
n = 3000
t = torch.arange(n).float()
level = 50 + 0.05 * t
series = level + (2 + t / 600) * torch.sin(2 * torch.pi * t / 24) + 0.5 * torch.randn(n)
exp = Experiment(series, cut=2200)
exp.fit()
exp.report()
