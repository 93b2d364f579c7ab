"""Heating demand of buildings: trained on mild months, tested on a cold one."""

import torch
from torch import nn

torch.manual_seed(1)
COLUMNS = ["outside", "wind", "sun", "occupants"]


def season(n, mean_temperature, spread):
    outside = mean_temperature + spread * torch.randn(n)
    wind = 3 + 2 * torch.rand(n)
    sun = 4 * torch.rand(n)
    occupants = torch.randint(1, 30, (n,)).float()
    demand = (20 - outside) * (1 + 0.05 * wind) - 1.5 * sun - 0.1 * occupants + torch.randn(n)
    return torch.stack([outside, wind, sun, occupants], dim=1), demand


def standardize(x):
    return (x - x.mean(dim=0, keepdim=True)) / x.std(dim=0, keepdim=True)


x_train, y_train = season(1200, mean_temperature=8.0, spread=6.0)
x_test, y_test = season(300, mean_temperature=-1.0, spread=3.0)
x_train = standardize(x_train)
x_test = standardize(x_test)
centre, scale = y_train.mean(), y_train.std()

model = nn.Sequential(nn.Linear(len(COLUMNS), 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for epoch in range(12):
    running = 0.0
    for rows in torch.randperm(len(x_train)).split(100):
        pred = model(x_train[rows]).squeeze(1)
        loss = nn.functional.mse_loss(pred, (y_train[rows] - centre) / scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(rows)
    scheduler.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}: train mse {running / len(x_train):.4f}")

model.eval()
with torch.no_grad():
    train_error = (model(x_train).squeeze(1) * scale + centre - y_train).abs().mean()
    test_error = (model(x_test).squeeze(1) * scale + centre - y_test).abs().mean()
print(f"mean error: train {train_error:.2f} kW, test {test_error:.2f} kW")
