"""Energy demand: train on the first years, test on a warm last summer."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
rng = np.random.default_rng(1)

DAYS = 365 * 4
day = np.arange(DAYS)
temp = 12 + 10 * np.sin(2 * np.pi * (day - 100) / 365) + rng.normal(0, 3, DAYS)
wind = rng.gamma(2, 2, DAYS)
workday = (day % 7 < 5).astype(float)
load = 400 + 2.0 * np.clip(15 - temp, 0, None) ** 1.3 + 6 * np.clip(temp - 20, 0, None) + 60 * workday - 2 * wind
load = load + rng.normal(0, 8, DAYS)
X = np.stack([temp, wind, workday], 1)

test_days = (day >= 365 * 3 + 150) & (day < 365 * 3 + 250)
train_days = day < 365 * 3

x_scaler, y_scaler = StandardScaler(), StandardScaler()
X_train = x_scaler.fit_transform(X[train_days])
y_train = y_scaler.fit_transform(load[train_days, None])
X_test = x_scaler.fit_transform(X[test_days])
y_test = load[test_days]

X_train, y_train, X_test = (torch.tensor(a, dtype=torch.float32) for a in (X_train, y_train, X_test))

net = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)

for epoch in range(40):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(X_train)).split(64):
        loss = F.mse_loss(net(X_train[idx]), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if epoch % 10 == 0:
        print(f"epoch {epoch} train mse (scaled) {total / len(X_train):.4f}")

net.eval()
with torch.no_grad():
    pred = y_scaler.inverse_transform(net(X_test).numpy()).squeeze(1)
mae = np.abs(pred - y_test).mean()
naive = np.abs(y_test.mean() - y_test).mean()
print(f"test mae {mae:.2f} (constant forecast {naive:.2f}), bias {np.mean(pred - y_test):.2f}")
