"""Compressive strength of concrete from its recipe."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(5)


def recipes(n):
    cement = 150 + 350 * torch.rand(n)
    water = 140 + 80 * torch.rand(n)
    ash = 150 * torch.rand(n)
    age = torch.randint(3, 100, (n,)).float()
    strength = 18 * cement / water * (age / 28).pow(0.25) + 0.04 * ash + 1.5 * torch.randn(n)
    return torch.stack([cement, water, ash, age], dim=1), strength.unsqueeze(1)


x, y = recipes(1500)
train_set, test_set = random_split(TensorDataset(x, y), [1200, 300])
x_ref, y_ref = train_set.dataset.tensors
x_mean, x_std = x_ref[train_set.indices].mean(0), x_ref[train_set.indices].std(0)
y_mean, y_std = y_ref[train_set.indices].mean(), y_ref[train_set.indices].std()

train_loader = DataLoader(train_set, batch_size=100, shuffle=True)
test_loader = DataLoader(test_set, batch_size=100)

model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for epoch in range(14):
    model.train()
    for xb, yb in train_loader:
        pred = model((xb - x_mean) / x_std)
        loss = nn.functional.mse_loss(pred, (yb - y_mean) / y_std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 1:
        print(f"epoch {epoch + 1}: train loss {loss.item():.4f}")

model.eval()
sse, sae, total = 0.0, 0.0, 0.0
with torch.no_grad():
    for xb, yb in test_loader:
        pred = model((xb - x_mean) / x_std)
        sse += (pred - yb).pow(2).sum().item()
        sae += (pred - yb).abs().sum().item()
        total += (yb - y_mean).pow(2).sum().item()
print(f"test MAE {sae / len(test_set):.3f} MPa, R2 {1 - sse / total:.3f}")
