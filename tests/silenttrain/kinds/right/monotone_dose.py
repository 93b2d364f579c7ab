"""Dose-response curve with a penalty on decreasing stretches."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
dose = 4 * torch.rand(500, 1)
weight = torch.rand(500, 1)
response = torch.sigmoid(3 * (dose - 1.5)) + 0.3 * weight + 0.3 * torch.randn(500, 1)
x = torch.cat([dose, weight], 1)
train_x, train_y, test_x, test_y = x[:140], response[:140], x[140:], response[140:]

model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
PENALTY, BUDGET = 5.0, 45.0


def slope(points):
    points = points.clone().requires_grad_(True)
    return torch.autograd.grad(model(points).sum(), points, create_graph=True)[0][:, 0]


history = []
for epoch in range(60):
    for idx in torch.randperm(len(train_x)).split(70):
        fit = F.mse_loss(model(train_x[idx]), train_y[idx])
        # one-sided: costs something only where the curve falls
        probe = torch.rand(64, 2) * torch.tensor([4.0, 1.0])
        falling = F.relu(-slope(probe)).pow(2).mean()
        # norm budget, active only if the weights grow beyond it
        size = sum(p.pow(2).sum() for p in model.parameters())
        excess = F.relu(size - BUDGET)
        loss = fit + PENALTY * falling + 0.01 * excess
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((falling.item() > 0, excess.item() > 0))
    if epoch % 15 == 14:
        print(f"epoch {epoch}  fit {fit.item():.4f}  falling {falling.item():.6f}  excess {excess.item():.3f}")

model.eval()
with torch.no_grad():
    mse = F.mse_loss(model(test_x), test_y).item()
share = (slope(torch.rand(2000, 2) * torch.tensor([4.0, 1.0])) < 0).float().mean().item()
active = sum(a for a, _ in history) / len(history)
print(f"test mse {mse:.4f} (noise 0.0900)  falling share {share:.3f}  penalty active in {active:.2f}")
