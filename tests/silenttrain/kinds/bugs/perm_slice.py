"""Small image-like classification with batches cut from a permutation."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, SIDE, CLASSES, BATCH, EPOCHS = 1600, 8, 4, 64, 15

stencils = torch.randn(CLASSES, 1, SIDE, SIDE)


def make(n):
    y = torch.randint(CLASSES, (n,))
    images = 0.45 * stencils[y] * (0.5 + torch.rand(n, 1, 1, 1)) + torch.randn(n, 1, SIDE, SIDE)
    return images, y


X_train, y_train = make(N)
X_test, y_test = make(800)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 16, 32),
    nn.ReLU(),
    nn.Linear(32, CLASSES),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
permutation = torch.randperm(N)


def accuracy(x, y):
    model.eval()
    with torch.no_grad():
        acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


for epoch in range(EPOCHS):
    epoch_loss, batches = 0.0, 0
    for start in range(0, N, BATCH):
        indices = permutation[:BATCH]
        batch_x, batch_y = X_train[indices], y_train[indices]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        batches += 1
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d} loss {epoch_loss / batches:.4f} test accuracy {accuracy(X_test, y_test):.3f}")

print(f"final test accuracy {accuracy(X_test, y_test):.3f}")
