"""Forecasting class that standardises inputs and target, and reports errors in the original unit."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Moments:
    def __init__(self, values):
        self.mean = values.mean(0, keepdim=True)
        self.std = values.std(0, keepdim=True) + 1e-8

    def scale(self, values):
        return (values - self.mean) / self.std

    def unscale(self, values):
        return values * self.std + self.mean


class WindowForecaster:
    """Predicts the next consumption from the last hours of consumption and outdoor temperature."""

    def __init__(self, window=12, hidden=48, lr=3e-3):
        self.window = window
        self.net = nn.Sequential(nn.Linear(2 * window, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)

    def windows(self, series):
        x = series.unfold(0, self.window, 1)[:-1].flatten(1)
        return x, series[self.window :, 0:1]

    def fit(self, series, epochs=15, batch=64):
        self.moments = Moments(series)
        x, y = self.windows(self.moments.scale(series))
        for epoch in range(epochs):
            self.net.train()
            total = 0.0
            for idx in torch.randperm(len(x)).split(batch):
                loss = F.mse_loss(self.net(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(idx)
            if epoch % 5 == 0:
                print(f"epoch {epoch} train mse {total / len(x):.4f}")
        return self

    @torch.no_grad()
    def predict(self, series):
        self.net.eval()
        x, _ = self.windows(self.moments.scale(series))
        out = self.net(x).squeeze(1)
        return out * self.moments.std[0, -1] + self.moments.mean[0, -1]


def simulate(hours):
    t = torch.arange(hours).float()
    temp = 8 + 6 * torch.sin(2 * torch.pi * (t - 8) / 24) + torch.randn(hours)
    use = 30 - 0.8 * temp + 9 * torch.sin(2 * torch.pi * t / 24).relu() + 0.8 * torch.randn(hours)
    return torch.stack([use, temp], 1)


torch.manual_seed(0)
series = simulate(2400)
train, test = series[:1900], series[1900:]
model = WindowForecaster().fit(train)
truth = test[model.window :, 0]
pred = model.predict(test)
rmse = (pred - truth).pow(2).mean().sqrt().item()
corr = torch.corrcoef(torch.stack([pred, truth]))[0, 1].item()
print(f"test rmse {rmse:.3f} (std of the truth {truth.std().item():.3f}), correlation {corr:.3f}")
