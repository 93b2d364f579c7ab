"""Predict a building's energy use in kWh; inputs and target are standardised for training."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
rng = np.random.default_rng(0)

n = 1600
floor_area = rng.uniform(50, 400, n)
insulation = rng.uniform(0, 1, n)
outside = rng.normal(8, 7, n)
people = rng.integers(1, 8, n)
kwh = 0.4 * floor_area * (1.3 - insulation) + 3.0 * np.maximum(18 - outside, 0) + 12 * people + rng.normal(0, 5, n)
X = np.stack([floor_area, insulation, outside, people], axis=1)

X_train, X_test = X[:1200], X[1200:]
y_train, y_test = kwh[:1200], kwh[1200:]

x_scaler, y_scaler = StandardScaler(), StandardScaler()
X_train = x_scaler.fit_transform(X_train)
X_test = x_scaler.transform(X_test)
y_train_scaled = y_scaler.fit_transform(y_train.reshape(-1, 1))

inputs = torch.tensor(X_train, dtype=torch.float32)
targets = torch.tensor(y_train_scaled, dtype=torch.float32)

model = nn.Sequential(
    nn.Linear(4, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(20):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(inputs)).split(60):
        loss = criterion(model(inputs[idx]), targets[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 5 == 4:
        print(f"epoch {epoch:2d}  scaled mse {total / len(inputs):.4f}")

model.eval()
with torch.no_grad():
    predictions = model(torch.tensor(X_test, dtype=torch.float32)).numpy().ravel()
rmse = np.sqrt(np.mean((predictions - y_test) ** 2))
print(f"test rmse {rmse:.2f} kWh  (standard deviation of the target {y_test.std():.2f})")
