"""Mixup with soft targets given to the cross-entropy; accuracy as a mean over equal test batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
CLASSES, FEATURES = 6, 20
CENTRES = 1.2 * torch.randn(CLASSES, FEATURES)


def sounds(n):
    y = torch.randint(0, CLASSES, (n,))
    return CENTRES[y] + torch.randn(n, FEATURES), y


def mixup(x, y, alpha=0.3):
    lam = torch.distributions.Beta(alpha, alpha).sample()
    other = torch.randperm(len(x))
    hot = nn.functional.one_hot(y, CLASSES).float()
    return lam * x + (1 - lam) * x[other], lam * hot + (1 - lam) * hot[other]


train_loader = DataLoader(TensorDataset(*sounds(1200)), batch_size=80, shuffle=True)
test_loader = DataLoader(TensorDataset(*sounds(600)), batch_size=100)
model = nn.Sequential(nn.Linear(FEATURES, 96), nn.ReLU(), nn.Linear(96, CLASSES))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(12):
    model.train()
    for x, y in train_loader:
        x, soft = mixup(x, y)
        loss = criterion(model(x), soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss of the last mixed batch {loss.item():.4f}")

model.eval()
scores, losses = [], []
with torch.no_grad():
    for x, y in test_loader:
        logits = model(x)
        losses.append(criterion(logits, y).item())
        scores.append((logits.argmax(1) == y).float().mean().item())
print(f"test loss {sum(losses) / len(losses):.4f}, test accuracy {sum(scores) / len(scores):.3f}")
