"""Predict the progress of a disease; the moments of the training rows scale both parts."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)


def patients(n, older):
    age = 40 + 10 * torch.randn(n) + (12 if older else 0)
    bmi = 26 + 4 * torch.randn(n) + (2 if older else 0)
    sugar = 90 + 15 * torch.randn(n) + 0.4 * (age - 40)
    pressure = 120 + 12 * torch.randn(n) + 0.5 * (age - 40)
    score = 2 * (bmi - 26) + 0.8 * (sugar - 90) + 0.4 * (age - 40) + 0.2 * (pressure - 120) + 5 * torch.randn(n)
    return torch.stack([age, bmi, sugar, pressure], dim=1), score / 10


x_train, y_train = patients(1000, older=False)
x_test, y_test = patients(300, older=True)
mean, std = x_train.mean(dim=0), x_train.std(dim=0)
train_loader = DataLoader(TensorDataset((x_train - mean) / std, y_train), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset((x_test - mean) / std, y_test), batch_size=100)

model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(9):
    model.train()
    total = 0.0
    for x, y in train_loader:
        loss = nn.functional.smooth_l1_loss(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {total / len(x_train):.4f}")

model.eval()
error = 0.0
with torch.no_grad():
    for x, y in test_loader:
        error += (model(x).squeeze(1) - y).pow(2).sum().item()
r2 = 1 - error / (y_test - y_test.mean()).pow(2).sum().item()
shift = ((x_test - mean) / std).mean(dim=0)
print(f"R2 on the older patients {r2:.3f}, their scaled inputs have means {[round(v, 2) for v in shift.tolist()]}")
