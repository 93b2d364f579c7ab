"""Reversible instance normalisation: every window is normalised by its own moments."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
PAST, FUTURE = 32, 8


class RevIN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.shift = nn.Parameter(torch.zeros(1))

    def normalise(self, x):
        mean = x.mean(1, keepdim=True)
        std = x.std(1, keepdim=True) + 1e-5
        return (x - mean) / std * self.gain + self.shift, mean, std

    def restore(self, y, mean, std):
        return (y - self.shift) / self.gain * std + mean


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.revin = RevIN()
        self.body = nn.Sequential(nn.Linear(PAST, 64), nn.GELU(), nn.Linear(64, FUTURE))

    def forward(self, x):
        z, mean, std = self.revin.normalise(x)
        return self.revin.restore(self.body(z), mean, std)


def curves(n, level, scale):
    """Sines with a random phase; level and scale differ from shop to shop."""
    t = torch.arange(PAST + FUTURE).float()
    phase = 6.28 * torch.rand(n, 1)
    period = 8 + 6 * torch.rand(n, 1)
    wave = torch.sin(6.28 * t / period + phase) + 0.1 * torch.randn(n, PAST + FUTURE)
    lv = level * (0.5 + torch.rand(n, 1))
    sc = scale * (0.5 + torch.rand(n, 1))
    series = lv + sc * wave
    return series[:, :PAST], series[:, PAST:]


train_x, train_y = curves(1500, level=100.0, scale=10.0)
test_x, test_y = curves(400, level=900.0, scale=60.0)  # new, larger shops
model = Forecaster()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(15):
    model.train()
    for idx in torch.randperm(len(train_x)).split(75):
        loss = F.mse_loss(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch}  train mse {loss.item():.3f}")

model.eval()
with torch.no_grad():
    predicted = model(test_x)
rmse = (predicted - test_y).pow(2).mean().sqrt().item()
flat = (test_x.mean(1, keepdim=True) - test_y).pow(2).mean().sqrt().item()
print(f"test rmse {rmse:.2f}  window mean instead {flat:.2f}")
