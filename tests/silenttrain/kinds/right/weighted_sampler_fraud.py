"""Rare frauds: a weighted sampler evens out the classes, the loss has no weights; the test set is left as it is."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(10)


def payments(n):
    fraud = (torch.rand(n) < 0.06).long()
    x = torch.randn(n, 10)
    x[:, 0] += 1.3 * fraud
    x[:, 1] -= 1.1 * fraud
    x[:, 2] *= 1 + fraud
    return x, fraud


x_train, y_train = payments(2000)
x_test, y_test = payments(2500)
counts = torch.bincount(y_train, minlength=2)
weights = (1.0 / counts.float())[y_train]
sampler = WeightedRandomSampler(weights, num_samples=len(y_train), replacement=True)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=125, sampler=sampler)
test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=400)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    drawn = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        drawn += y.sum().item()
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, share of fraud drawn {drawn / len(y_train):.2f}")

model.eval()
correct, total = torch.zeros(2), torch.zeros(2)
with torch.no_grad():
    for x, y in test_loader:
        hit = model(x).argmax(1) == y
        for c in (0, 1):
            correct[c] += hit[y == c].sum()
            total[c] += (y == c).sum()
recall = correct / total
print(f"recall: regular {recall[0]:.3f}, fraud {recall[1]:.3f}; accuracy {(correct.sum() / total.sum()):.3f}")
