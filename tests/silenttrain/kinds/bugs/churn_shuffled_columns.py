"""Predict which customers leave, from a feature matrix and a separate vector of answers."""

import torch
from torch import nn

torch.manual_seed(11)
CUSTOMERS, FEATURES = 1600, 12


def customers(n):
    x = torch.randn(n, FEATURES)
    x[:, 0] = (torch.rand(n) < 0.4).float()
    score = 1.2 * x[:, 0] + x[:, 1] - 0.8 * x[:, 2] * x[:, 3] - 0.5 + 0.3 * torch.randn(n)
    return x, (score > 0).float()


def shuffled(tensor):
    return tensor[torch.randperm(len(tensor))]


def batches(x, y, size):
    x, y = shuffled(x), shuffled(y)
    for start in range(0, len(x), size):
        yield x[start : start + size], y[start : start + size]


features, churned = customers(CUSTOMERS)
x_train, y_train = features[:1200], churned[:1200]
x_val, y_val = features[1200:], churned[1200:]

model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)

for epoch in range(12):
    seen, total = 0, 0.0
    for xb, yb in batches(x_train, y_train, 80):
        logit = model(xb).squeeze(1)
        loss = loss_fn(logit, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
        seen += len(xb)
    with torch.no_grad():
        val_logit = model(x_val).squeeze(1)
        val_loss = loss_fn(val_logit, y_val)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  train {total / seen:.4f}  val {val_loss.item():.4f}")

with torch.no_grad():
    prob = torch.sigmoid(model(x_val).squeeze(1))
accuracy = ((prob > 0.5) == y_val.bool()).float().mean()
leavers, stayers = prob[y_val == 1], prob[y_val == 0]
auc = (leavers[:, None] > stayers[None, :]).float().mean()
print(f"validation accuracy {accuracy:.3f}, AUC {auc:.3f}")
