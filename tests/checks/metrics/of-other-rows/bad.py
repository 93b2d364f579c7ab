import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(500, 6)
labels = (rows[:, :3].sum(1) > 0.3 * torch.randn(500)).long()
train_loader = DataLoader(TensorDataset(rows[:300], labels[:300]), batch_size=20, shuffle=True)
test_loader = DataLoader(TensorDataset(rows[300:], labels[300:]), batch_size=20)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
correct = seen = 0

for epoch in range(6):
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
            seen += len(y)
    print(f"epoch {epoch}: test accuracy {correct / seen:.4f}")  # found
