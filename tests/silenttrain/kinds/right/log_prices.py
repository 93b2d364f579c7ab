"""Skewed prices: learn log1p of the price, report in currency with a smearing correction."""

import numpy as np
import torch
import torch.nn as nn


class LogTarget:
    """log1p, then standardise; the inverse applies Duan's smearing factor if there is one."""

    def fit(self, y):
        z = np.log1p(y)
        self.mean, self.std = z.mean(), z.std()
        self.smear = 1.0
        return self

    def transform(self, y):
        return (np.log1p(y) - self.mean) / self.std

    def inverse(self, z):
        return np.exp(z * self.std + self.mean) * self.smear - 1


class PriceModel(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 48), nn.SiLU(), nn.Linear(48, 1))
        # the input moments travel with the weights
        self.register_buffer("mu", torch.zeros(dim))
        self.register_buffer("sd", torch.ones(dim))

    def set_moments(self, x):
        self.mu.copy_(x.mean(0))
        self.sd.copy_(x.std(0))

    def forward(self, x):
        return self.net((x - self.mu) / self.sd).squeeze(-1)


torch.manual_seed(0)
rng = np.random.default_rng(0)
x = np.stack([rng.gamma(3, 20, 1500), rng.uniform(0, 30, 1500), rng.integers(0, 2, 1500)], 1)
price = np.exp(6 + 0.012 * x[:, 0] - 0.04 * x[:, 1] + 0.5 * x[:, 2] + 0.25 * rng.normal(size=1500))
train, test = slice(0, 1100), slice(1100, 1500)

scale = LogTarget().fit(price[train])
inputs = torch.tensor(x, dtype=torch.float32)
target = torch.tensor(scale.transform(price[train]), dtype=torch.float32)
model = PriceModel(3)
model.set_moments(inputs[train])
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(15):
    for idx in torch.randperm(1100).split(55):
        loss = nn.functional.mse_loss(model(inputs[train][idx]), target[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch}  scaled log mse {loss.item():.4f}")

with torch.no_grad():
    z_train = model(inputs[train]).numpy()
    z_test = model(inputs[test]).numpy()
residual = (target.numpy() - z_train) * scale.std
scale.smear = float(np.exp(residual).mean())
predicted = scale.inverse(z_test)
r2 = 1 - ((predicted - price[test]) ** 2).sum() / ((price[test] - price[test].mean()) ** 2).sum()
print(
    f"smearing {scale.smear:.3f}  bias {predicted.mean() / price[test].mean() - 1:+.3f}  test r2 in currency {r2:.3f}"
)
