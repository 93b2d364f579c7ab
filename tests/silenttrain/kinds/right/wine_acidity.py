"""Titratable acidity of must from infrared bands; plain regression, everything kept as columns."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(61)


def make_must(n, seed):
    rng = np.random.default_rng(seed)
    acid, sugar, alc = rng.normal(7, 1.5, n), rng.normal(190, 25, n), rng.gamma(1.5, 1.0, n)
    wl = np.linspace(0, 1, 24)
    bands = (
        0.2 * acid[:, None] * np.exp(-(((wl - 0.3) / 0.15) ** 2))
        + 0.01 * sugar[:, None] * np.exp(-(((wl - 0.5) / 0.2) ** 2))
        + 0.3 * np.sqrt(alc)[:, None] * np.exp(-(((wl - 0.4) / 0.1) ** 2))
    )
    bands += 0.06 * rng.normal(size=bands.shape)
    return torch.tensor(bands, dtype=torch.float32), torch.tensor(acid, dtype=torch.float32)


def r2_score(pred, target):
    ss_res = (target - pred).pow(2).sum()
    ss_tot = (target - target.mean()).pow(2).sum()
    return (1 - ss_res / ss_tot).item()


x_tr, y_tr = make_must(1500, 1)
x_te, y_te = make_must(500, 2)
centre, scale = x_tr.mean(0), x_tr.std(0)
x_tr, x_te = (x_tr - centre) / scale, (x_te - centre) / scale

model = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 1))
with torch.no_grad():
    model[-1].bias.fill_(y_tr.mean())
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
loader = DataLoader(TensorDataset(x_tr, y_tr.unsqueeze(1)), batch_size=50, shuffle=True)

for epoch in range(25):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:2d}  mse {total / len(loader):.4f}")

model.eval()
with torch.no_grad():
    pred = model(x_te)
err = pred - y_te[:, None]
print(f"test MAE {err.abs().mean():.3f} g/l   RMSE {err.square().mean().sqrt():.3f} g/l")
print(f"test R2  {r2_score(pred, y_te.view_as(pred)):.4f}")
print(f"within 0.5 g/l: {(err.abs() <= 0.5).float().mean():.4f}")
