"""Binary targets with label uncertainty; the decision threshold comes from validation rows."""

import torch
import torch.nn as nn

torch.manual_seed(0)
n = 3000
x = torch.randn(n, 8)
p_true = torch.sigmoid(2.5 * x[:, 0] + 1.5 * x[:, 1] * x[:, 2] - 3.2)
y = torch.bernoulli(p_true)
# annotations are shares of five votes, pulled away from 0 and 1
votes = torch.binomial(torch.full((n,), 5.0), 0.9 * y + 0.05)
soft = (votes + 0.5) / 6

train, val, test = slice(0, 1800), slice(1800, 2400), slice(2400, 3000)
model = nn.Sequential(
    nn.Linear(8, 48),
    nn.ReLU(),
    nn.Linear(48, 24),
    nn.ReLU(),
    nn.Linear(24, 1),
    nn.Sigmoid(),
    nn.Flatten(0),
)
criterion = nn.BCELoss(reduction="sum")
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    total = 0.0
    for idx in torch.randperm(1800).split(64):
        # a sum over the batch, brought back to a mean
        loss = criterion(model(x[train][idx]), soft[train][idx]) / len(idx)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 2:
        print(f"epoch {epoch:2d}  bce {total / 1800:.4f}")


def f1(pred, truth):
    tp = (pred * truth).sum()
    return (2 * tp / (pred.sum() + truth.sum()).clamp(min=1)).item()


def auc(score, truth):
    """Share of positive-negative pairs in the right order."""
    pos, neg = score[truth == 1], score[truth == 0]
    diff = pos[:, None] - neg[None, :]
    return ((diff > 0).float() + 0.5 * (diff == 0).float()).mean().item()


with torch.no_grad():
    p_val, p_test = model(x[val]), model(x[test])
grid = torch.linspace(0.1, 0.9, 33)
threshold = max(grid.tolist(), key=lambda t: f1((p_val > t).float(), y[val]))
majority = 1 - y[test].mean().item()
print(
    f"threshold {threshold:.3f}  test f1 {f1((p_test > threshold).float(), y[test]):.3f}  "
    f"auc {auc(p_test, y[test]):.3f}  positives {1 - majority:.3f}"
)
