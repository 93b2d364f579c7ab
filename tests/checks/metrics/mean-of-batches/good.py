import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(400, 5)
labels = (rows[:, :2].sum(1) + 0.5 * torch.randn(400) > 1.5).long()
train_loader = DataLoader(TensorDataset(rows[:300], labels[:300]), batch_size=20, shuffle=True)
test_loader = DataLoader(TensorDataset(rows[300:], labels[300:]), batch_size=10)
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def f1(predicted, true):
    hits = (predicted * true).sum().item()
    return 2 * hits / max(1, (predicted.sum() + true.sum()).item())


for _ in range(4):
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    predicted, true = [], []
    with torch.no_grad():
        for x, y in test_loader:
            predicted.append(model(x).argmax(1))
            true.append(y)
    print(f"F1 {f1(torch.cat(predicted), torch.cat(true)):.5f}")
