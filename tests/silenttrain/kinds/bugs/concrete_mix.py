# %% Compressive strength of concrete from the mix design
import numpy as np
import torch
from torch import nn

torch.manual_seed(41)
rng = np.random.default_rng(41)

# %% mixes
n = 2200
cement, water = rng.uniform(150, 500, n), rng.uniform(130, 230, n)
slag, age = rng.uniform(0, 200, n) * (rng.random(n) < 0.5), rng.choice([3, 7, 14, 28, 56, 90], n)
coarse, fine = rng.uniform(800, 1100, n), rng.uniform(600, 950, n)
strength = 60 * np.log1p(age) / np.log(91) * (cement + 0.6 * slag) / (cement + 0.6 * slag + 1.6 * water)
strength += 0.01 * (coarse - 950) - 0.008 * (fine - 775) + rng.normal(0, 2.0, n)

x = np.stack([cement, water, slag, np.log1p(age), coarse, fine], axis=1)
x = torch.tensor(x, dtype=torch.float32)
y = torch.tensor(strength, dtype=torch.float32)

# %% split and scaling
train, test = torch.arange(0, 1700), torch.arange(1700, n)
mu, sd = x[train].mean(0), x[train].std(0)
x = (x - mu) / sd
y_mu, y_sd = y[train].mean(), y[train].std()

# %% model
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

# %% training
for epoch in range(30):
    model.train()
    total = 0.0
    for idx in train[torch.randperm(len(train))].split(64):
        pred = model(x[idx]).squeeze(1)
        loss = nn.functional.mse_loss(pred, (y[idx] - y_mu) / y_sd)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if (epoch + 1) % 10 == 0:
        print(f"epoch {epoch + 1}: train mse (standardised) {total / len(train):.4f}")

# %% test in MPa
model.eval()
with torch.no_grad():
    pred = model(x[test]) * y_sd + y_mu
error = pred - y[test]
rmse = error.pow(2).mean().sqrt()
close = (error.abs() < 5).float().mean()
print(f"test RMSE {rmse:.2f} MPa   within 5 MPa: {100 * close:.1f} %")
