"""Regress a quality score and report mean squared error and R^2 on held-out rows."""

import torch
import torch.nn as nn

torch.manual_seed(0)

n = 1500
chem = torch.randn(n, 6)
quality = chem[:, 0] - 0.7 * chem[:, 1] * chem[:, 2] + 0.5 * chem[:, 3].abs() + 0.2 * torch.randn(n)

train_x, test_x = chem[:1100], chem[1100:]
train_y, test_y = quality[:1100], quality[1100:]

model = nn.Sequential(
    nn.Linear(6, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def mean_squared_error(pred, target):
    return ((pred - target) ** 2).mean().item()


def r2_score(pred, target):
    residual = ((pred - target) ** 2).mean()
    total = ((target - target.mean()) ** 2).mean()
    return (1 - residual / total).item()


for epoch in range(20):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(train_x)).split(55):
        pred = model(train_x[idx])
        loss = criterion(pred, train_y[idx].unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    if epoch % 4 == 3:
        print(f"epoch {epoch:2d}  train mse {running / len(train_x):.4f}")

model.eval()
with torch.no_grad():
    pred = model(test_x)
print(f"test mse {mean_squared_error(pred, test_y):.4f}  r2 {r2_score(pred, test_y):.4f}")
