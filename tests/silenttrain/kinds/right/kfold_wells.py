"""Five-fold cross-validation by index on water wells, a fresh network for each fold."""

import torch
from torch import nn

torch.manual_seed(3)
ROWS, COLUMNS, FOLDS, EPOCHS = 300, 12, 5, 8


def wells():
    x = torch.randn(ROWS, COLUMNS)
    level = 2 * x[:, 0] - x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + 0.3 * torch.randn(ROWS)
    return x, level


def fit(x, y, rows, fold):
    torch.manual_seed(100 + fold)
    net = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    mean, std = x[rows].mean(0), x[rows].std(0)
    for _ in range(EPOCHS):
        for batch in rows[torch.randperm(len(rows))].split(60):
            pred = net((x[batch] - mean) / std).squeeze(1)
            loss = nn.functional.mse_loss(pred, y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return lambda rows: net((x[rows] - mean) / std).squeeze(1)


x, y = wells()
folds = torch.randperm(ROWS).chunk(FOLDS)
out_of_fold = torch.full((ROWS,), float("nan"))
for k in range(FOLDS):
    val_rows = folds[k]
    train_rows = torch.cat([f for j, f in enumerate(folds) if j != k])
    predict = fit(x, y, train_rows, k)
    with torch.no_grad():
        out_of_fold[val_rows] = predict(val_rows)
    error = (out_of_fold[val_rows] - y[val_rows]).pow(2).mean().sqrt()
    print(f"fold {k}: rmse {error:.3f}")

residual = (out_of_fold - y).pow(2).sum()
print(f"out-of-fold R2 {1 - residual / (y - y.mean()).pow(2).sum():.3f} over {out_of_fold.isfinite().sum()} rows")
