"""Soil carbon from near infrared spectra: train a head on a frozen encoder, then all of it."""

import math

import numpy as np
import torch
from torch import nn

torch.manual_seed(23)
CHANNELS = 60


def make_spectra(n, seed):
    rng = np.random.default_rng(seed)
    wl = np.linspace(0, 1, CHANNELS)
    conc = rng.uniform(0, 1, size=(n, 3))
    bands = np.stack([np.exp(-(((wl - c) / 0.08) ** 2)) for c in (0.25, 0.5, 0.7)])
    x = np.log1p(3 * conc) @ bands + 0.08 * rng.normal(size=(n, CHANNELS))
    y = 3 * conc[:, 0] - 1.5 * conc[:, 1] * conc[:, 2] + 0.3 * rng.normal(size=n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class SpectraNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(CHANNELS, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(-1)


def rmse(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x) - y).pow(2).mean().sqrt().item()


x_tr, y_tr = make_spectra(1200, 1)
x_te, y_te = make_spectra(1000, 2)
model = SpectraNet()
FROZEN, FULL, BATCH = 5, 35, 32
updates = (FROZEN + FULL) * math.ceil(len(x_tr) / BATCH)

for p in model.encoder.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.2, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=updates)

for epoch in range(FROZEN + FULL):
    if epoch == FROZEN:
        for p in model.encoder.parameters():
            p.requires_grad_(True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x_tr)).split(BATCH):
        loss = (model(x_tr[idx]) - y_tr[idx]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(idx)
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:2d}  train rmse {math.sqrt(total / len(x_tr)):.4f}")

print(f"test rmse {rmse(model, x_te, y_te):.4f}  (noise level 0.30)")
