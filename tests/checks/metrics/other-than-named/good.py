import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(400, 5)
targets = rows @ torch.randn(5, 1) + 0.1 * torch.randn(400, 1)
train_loader = DataLoader(TensorDataset(rows[:300], targets[:300]), batch_size=20, shuffle=True)
test_loader = DataLoader(TensorDataset(rows[300:], targets[300:]), batch_size=20)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

for _ in range(4):
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    squares = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            squares += (model(x) - y).square().sum().item()
    print("RMSE", (squares / 100) ** 0.5)
