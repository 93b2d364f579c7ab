"""Five-fold cross-validation of a small network on a bioassay with few rows and many columns."""

import torch
from torch import nn

torch.manual_seed(6)
ROWS, COLUMNS, FOLDS, EPOCHS = 200, 80, 5, 10


def assay():
    x = torch.randn(ROWS, COLUMNS)
    w = torch.zeros(COLUMNS)
    w[:8] = 1.0
    return x, ((x @ w + 2.0 * torch.randn(ROWS)) > 0).long()


def make_folds(n, k):
    return torch.randperm(n).chunk(k)


def rows_without(folds, held_out=0):
    return torch.cat([f for j, f in enumerate(folds) if j != held_out])


def fit(x, y, rows):
    net = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(EPOCHS):
        for batch in rows[torch.randperm(len(rows))].split(54):
            loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net, loss.item()


x, y = assay()
folds = make_folds(ROWS, FOLDS)
scores = []
for k in range(FOLDS):
    train_rows = rows_without(folds)
    val_rows = folds[k]
    net, last = fit(x, y, train_rows)
    with torch.no_grad():
        accuracy = (net(x[val_rows]).argmax(1) == y[val_rows]).float().mean().item()
    scores.append(accuracy)
    print(f"fold {k}: {len(train_rows)} rows for training, last loss {last:.4f}, accuracy {accuracy:.3f}")
scores = torch.tensor(scores)
print(f"accuracy {scores.mean():.3f} +- {scores.std():.3f}")
