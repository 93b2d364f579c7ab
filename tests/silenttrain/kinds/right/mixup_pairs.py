"""Mixup: inputs and labels are blended with those of a permuted batch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, DIM, CLASSES, ALPHA = 800, 20, 5, 0.4
means = 0.8 * torch.randn(CLASSES, DIM)


def make(n):
    y = torch.randint(CLASSES, (n,))
    return means[y] + torch.randn(n, DIM), y


x_train, y_train = make(N)
x_test, y_test = make(1500)
net = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, CLASSES))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
beta = torch.distributions.Beta(ALPHA, ALPHA)

for epoch in range(25):
    order = torch.randperm(N)
    total = 0.0
    for i in range(0, N, 80):
        rows = order[i : i + 80]
        x, y = x_train[rows], y_train[rows]
        lam = beta.sample().item()
        perm = torch.randperm(len(x))
        mixed = lam * x + (1 - lam) * x[perm]
        logits = net(mixed)
        loss = lam * F.cross_entropy(logits, y) + (1 - lam) * F.cross_entropy(logits, y[perm])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 6 == 0:
        # this loss stays high since mixed labels cannot be predicted surely
        print(f"epoch {epoch} mixup loss {total / 10:.4f}")

net.eval()
with torch.no_grad():
    probs = net(x_test).softmax(1)
conf, pred = probs.max(1)
acc = (pred == y_test).float().mean().item()
bayes = (torch.cdist(x_test, means).argmin(1) == y_test).float().mean().item()
print(f"test accuracy {acc:.3f} (best possible {bayes:.3f}), mean confidence {conf.mean().item():.3f}")
