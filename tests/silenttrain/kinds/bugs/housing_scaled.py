"""Predict whether a flat sells above the asking price from raw numeric features."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
rng = np.random.default_rng(0)
n = 1500
area = rng.normal(80, 25, n)
rooms = rng.integers(1, 6, n)
age = rng.uniform(0, 100, n)
distance = rng.exponential(4000, n)
score = 0.03 * (area - 80) + 0.4 * (rooms - 3) - 0.02 * (age - 50) - 0.0003 * (distance - 4000)
sold_above = (score + 0.5 * rng.normal(size=n) > 0).astype(np.float32)
features = np.stack([area, rooms, age, distance], 1)

X_train, X_test, y_train, y_test = train_test_split(features, sold_above, test_size=0.25, random_state=1)

scaler = StandardScaler()
X_train_scaled = scaler.fit_transform(X_train)

train_inputs = torch.tensor(X_train_scaled, dtype=torch.float32)
train_targets = torch.tensor(y_train).unsqueeze(1)
test_inputs = torch.tensor(X_test, dtype=torch.float32)
test_targets = torch.tensor(y_test).unsqueeze(1)

model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(15):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_inputs)).split(64):
        loss = criterion(model(train_inputs[idx]), train_targets[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 5 == 4:
        print(f"epoch {epoch:2d}  loss {total / len(train_inputs):.4f}")

model.eval()
with torch.no_grad():
    predicted = (model(test_inputs) > 0).float()
print(f"test accuracy {(predicted == test_targets).float().mean().item():.3f}")
