"""The network holds the standardisation itself, so raw rows go in everywhere."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Standardize(nn.Module):
    """Moments of the training rows, kept as buffers."""

    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("std", torch.ones(dim))

    @torch.no_grad()
    def adapt(self, x):
        self.mean.copy_(x.mean(0))
        self.std.copy_(x.std(0).clamp_min(1e-6))

    def forward(self, x):
        return (x - self.mean) / self.std


def cars(n):
    weight = 900 + 1200 * torch.rand(n)
    power = 40 + 0.1 * weight + 30 * torch.randn(n)
    year = torch.randint(1990, 2021, (n,)).float()
    use = 2 + 0.004 * weight + 0.015 * power - 0.1 * (year - 2000) + 0.3 * torch.randn(n)
    return torch.stack([weight, power, year], 1), use


x_train, y_train = cars(1500)
x_test, y_test = cars(500)

norm = Standardize(3)
norm.adapt(x_train)
out_mean, out_std = y_train.mean(), y_train.std()
model = nn.Sequential(norm, nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(15):
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(50):
        target = (y_train[idx] - out_mean) / out_std
        loss = F.mse_loss(model(x_train[idx]).squeeze(1), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch} loss {total / 30:.4f}")

model.eval()
with torch.no_grad():
    pred = model(x_test).squeeze(1) * out_std + out_mean
print(f"test mae {(pred - y_test).abs().mean().item():.3f} litres, std of the truth {y_test.std().item():.3f}")
