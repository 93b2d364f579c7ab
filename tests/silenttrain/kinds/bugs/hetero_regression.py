"""Probabilistic regression: mean and spread of the target, trained with the Gaussian likelihood."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class MeanAndSpread(nn.Module):
    def __init__(self, dim, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean = nn.Linear(hidden, 1)
        self.spread = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h).squeeze(1), F.softplus(self.spread(h)).squeeze(1) + 1e-3


class Regressor:
    def __init__(self, dim, lr=3e-3):
        self.net = MeanAndSpread(dim)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.criterion = nn.GaussianNLLLoss()

    def fit(self, x, y, epochs=30, batch=64):
        for epoch in range(epochs):
            total = 0.0
            for idx in torch.randperm(len(x)).split(batch):
                mean, std = self.net(x[idx])
                loss = self.criterion(mean, y[idx], std)
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
                self.opt.step()
                total += loss.item() * len(idx)
            if epoch % 6 == 0:
                print(f"epoch {epoch} nll {total / len(x):.4f}")
        return self

    @torch.no_grad()
    def intervals(self, x, z=1.96):
        mean, std = self.net(x)
        return mean, mean - z * std, mean + z * std


def make(n):
    x = torch.rand(n, 3) * 4 - 2
    std = 0.1 + 0.25 * (x[:, 1] + 2)  # noise grows with the second feature
    return x, 2 * torch.sin(x[:, 0]) + 0.5 * x[:, 2] + std * torch.randn(n), std


torch.manual_seed(0)
x_train, y_train, _ = make(2000)
x_test, y_test, std_test = make(2000)
model = Regressor(3).fit(x_train, y_train)
mean, low, high = model.intervals(x_test)
inside = ((y_test > low) & (y_test < high)).float()
quiet = std_test < 0.4
print(f"test rmse {(mean - y_test).pow(2).mean().sqrt().item():.3f}")
print(
    f"95% interval covers {inside.mean().item():.3f}; "
    f"quiet rows {inside[quiet].mean().item():.3f}, noisy rows {inside[~quiet].mean().item():.3f}"
)
