"""Fault detection from sensor readings of very different ranges."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
rng = np.random.default_rng(0)

n = 2000
temperature = rng.normal(60, 8, n)
pressure = rng.normal(2.5, 0.4, n)
vibration = rng.gamma(2.0, 0.5, n)
current = rng.normal(15, 3, n)
humidity = rng.uniform(20, 90, n)
X = np.stack([temperature, pressure, vibration, current, humidity], 1).astype(np.float32)
risk = (temperature - 60) / 8 + 1.5 * (vibration - 1) - (pressure - 2.5) / 0.4 + 0.5 * rng.normal(size=n)
y = (risk > 0.5).astype(np.float32)

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)

scaler = StandardScaler()
X_train_scaled = scaler.fit_transform(X_train)
X_test_scaled = scaler.transform(X_test)

train_x, train_y = torch.from_numpy(X_train_scaled), torch.from_numpy(y_train)
test_x, test_y = torch.from_numpy(X_test), torch.from_numpy(y_test)

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(20):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(train_x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(train_x[idx]).squeeze(1), train_y[idx])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    if epoch % 5 == 0:
        print(f"epoch {epoch} loss {running / len(train_x):.4f}")

model.eval()
with torch.no_grad():
    logits = model(test_x).squeeze(1)
accuracy = ((logits > 0) == (test_y > 0.5)).float().mean().item()
print(f"test loss {criterion(logits, test_y).item():.3f} test accuracy {accuracy:.3f}")
