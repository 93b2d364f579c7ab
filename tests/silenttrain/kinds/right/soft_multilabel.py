"""Multi-label tagging with smoothed targets, per-label pos_weight and per-label thresholds."""

import torch
import torch.nn as nn

torch.manual_seed(0)
DIM, LABELS, EPS = 20, 6, 0.05
W = torch.randn(DIM, LABELS) / DIM**0.5
bias = torch.tensor([-0.2, -0.6, -1.0, -1.3, -1.6, 0.3])


def make(n):
    x = torch.randn(n, DIM)
    return x, (x @ W + bias + 0.2 * torch.randn(n, LABELS) > 0).float()


x_train, y_train = make(1500)
x_val, y_val = make(500)
x_test, y_test = make(1000)

net = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, LABELS))
positives = y_train.sum(0)
pos_weight = (len(y_train) - positives) / positives  # one entry is below one: that label is frequent
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)

for epoch in range(15):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(50):
        soft = y_train[idx] * (1 - EPS) + EPS / 2  # targets between 0.025 and 0.975
        loss = criterion(net(x_train[idx]), soft)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch} loss {total / 30:.4f}")


def f1(pred, y):
    tp = (pred * y).sum(0)
    return 2 * tp / (pred.sum(0) + y.sum(0)).clamp_min(1)


net.eval()
with torch.no_grad():
    p_val, p_test = net(x_val).sigmoid(), net(x_test).sigmoid()
grid = torch.linspace(0.1, 0.95, 35)
# the weighted loss moves the probabilities, so the thresholds come from the validation rows
table = torch.stack([f1((p_val > g).float(), y_val) for g in grid])
threshold = grid[table.argmax(0)]
scores = f1((p_test > threshold).float(), y_test)
print("label rates", [round(v, 2) for v in y_train.mean(0).tolist()])
print("thresholds", [round(v, 2) for v in threshold.tolist()])
print(
    f"test macro f1 {scores.mean().item():.3f}, exact match "
    f"{((p_test > threshold).float() == y_test).all(1).float().mean().item():.3f}"
)
