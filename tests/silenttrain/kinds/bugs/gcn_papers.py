"""A two-layer graph convolution on a stochastic block model, a few labelled nodes per class."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
NODES, CLASSES = 400, 4


def build_graph():
    y = torch.randint(CLASSES, (NODES,))
    same = y[:, None] == y[None, :]
    prob = torch.where(same, torch.tensor(0.06), torch.tensor(0.012))
    upper = torch.triu(torch.rand(NODES, NODES) < prob, 1).float()
    adj = upper + upper.T + torch.eye(NODES)
    inv = adj.sum(1).rsqrt()
    x = torch.randn(NODES, 64)
    x[torch.arange(NODES), y] += 1.0
    return x, inv[:, None] * adj * inv[None, :], y


def split_masks(y, per_class=20):
    train = torch.zeros(NODES, dtype=torch.bool)
    for c in range(CLASSES):
        rows = (y == c).nonzero().squeeze(1)
        train[rows[torch.randperm(len(rows))[:per_class]]] = True
    rest = (~train).nonzero().squeeze(1)
    rest = rest[torch.randperm(len(rest))]
    val, test = torch.zeros_like(train), torch.zeros_like(train)
    val[rest[:100]] = True
    test[rest[100:]] = True
    return train, val, test


class GCN(nn.Module):
    def __init__(self, dim, hidden, classes):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(dim, hidden), nn.Linear(hidden, classes)

    def forward(self, x, a):
        h = F.relu(a @ self.lin1(x))
        h = F.dropout(h, 0.3, self.training)
        return a @ self.lin2(h)


x, a, y = build_graph()
train_mask, val_mask, test_mask = split_masks(y)
model = GCN(64, 32, CLASSES)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
best_val, best_test = 0.0, 0.0
for epoch in range(120):
    model.train()
    out = model(x, a)
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model(x, a).argmax(1)
    acc = {
        name: (pred[m] == y[m]).float().mean().item()
        for name, m in (("train", train_mask), ("val", val_mask), ("test", test_mask))
    }
    if acc["val"] > best_val:
        best_val, best_test = acc["val"], acc["test"]
    if epoch % 20 == 19:
        print(f"epoch {epoch:3d}  loss {loss.item():.4f}  " + "  ".join(f"{k} {v:.3f}" for k, v in acc.items()))
print(f"best val {best_val:.3f}  test accuracy {best_test:.3f}")
