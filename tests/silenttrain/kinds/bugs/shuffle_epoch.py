"""Classify sensor readings; the training rows are reshuffled before every epoch."""

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.default_rng(0)

n, d, classes, batch_size = 1200, 10, 3, 50
centers = rng.normal(scale=1.2, size=(classes, d))
labels = rng.integers(classes, size=n)
readings = centers[labels] + rng.normal(size=(n, d))

X = torch.tensor(readings, dtype=torch.float32)
y = torch.tensor(labels, dtype=torch.long)
X_train, y_train = X[:900], y[:900]
X_test, y_test = X[900:], y[900:]

mean, std = X_train.mean(0), X_train.std(0)
X_train = (X_train - mean) / std
X_test = (X_test - mean) / std

model = nn.Sequential(
    nn.Linear(d, 64),
    nn.ReLU(),
    nn.Linear(64, classes),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
    model.train()
    perm = torch.randperm(len(X_train))
    X_train = X_train[perm]
    total, correct = 0.0, 0
    for start in range(0, len(X_train), batch_size):
        xb = X_train[start : start + batch_size]
        yb = y_train[start : start + batch_size]
        logits = model(xb)
        loss = criterion(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
        correct += (logits.argmax(1) == yb).sum().item()
    print(f"epoch {epoch:2d}  loss {total / len(X_train):.4f}  accuracy {correct / len(X_train):.3f}")

model.eval()
with torch.no_grad():
    accuracy = (model(X_test).argmax(1) == y_test).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
