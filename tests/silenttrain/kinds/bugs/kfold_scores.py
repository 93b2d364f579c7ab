"""Five-fold cross-validation of a small network on a noisy problem."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, DIM, K, EPOCHS, BATCH = 400, 30, 5, 25, 32

X = torch.randn(N, DIM)
score = X[:, 0] + X[:, 1] * X[:, 2] - 0.5 * X[:, 3]
y = (score + 0.8 * torch.randn(N) > 0).long()
X_new = torch.randn(3000, DIM)
y_new = (X_new[:, 0] + X_new[:, 1] * X_new[:, 2] - 0.5 * X_new[:, 3] + 0.8 * torch.randn(3000) > 0).long()

model = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def run_epoch(model, opt, rows):
    model.train()
    total = 0.0
    for idx in rows[torch.randperm(len(rows))].split(BATCH):
        loss = F.cross_entropy(model(X[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(rows)


@torch.no_grad()
def accuracy(model, x, target):
    model.eval()
    return (model(x).argmax(1) == target).float().mean().item()


folds = torch.randperm(N).chunk(K)
scores = []
for k in range(K):
    val_rows = folds[k]
    train_rows = torch.cat([f for j, f in enumerate(folds) if j != k])
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        train_loss = run_epoch(model, opt, train_rows)
    acc = accuracy(model, X[val_rows], y[val_rows])
    scores.append(acc)
    print(f"fold {k} train loss {train_loss:.4f} validation accuracy {acc:.3f}")

scores = torch.tensor(scores)
print(f"cross-validated accuracy {scores.mean().item():.3f} +- {scores.std().item():.3f}")
print(f"accuracy on fresh data {accuracy(model, X_new, y_new):.3f}")
