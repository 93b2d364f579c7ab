"""Noisy-label classification with flooding: the training loss is kept near a level b."""

import torch
import torch.nn as nn
import torch.nn.functional as F

FLOOD, EPOCHS, N, DIM = 0.45, 40, 600, 20


def make(n, flip, gen):
    x = torch.randn(n, DIM, generator=gen)
    y = (x[:, :3].sum(1) + 0.5 * x[:, 3] * x[:, 4] > 0).long()
    wrong = torch.rand(n, generator=gen) < flip
    return x, torch.where(wrong, 1 - y, y)


def train(flood):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for idx in torch.randperm(N).split(60):
            ce = F.cross_entropy(net(x_train[idx]), y_train[idx])
            # Ishida et al. 2020: below the level the gradient changes its sign
            loss = (ce - flood).abs() + flood
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += ce.item()
        if epoch % 10 == 0 or epoch == EPOCHS - 1:
            print(f"flood {flood:.2f} epoch {epoch} cross entropy {total / 10:.4f}")
    net.eval()
    with torch.no_grad():
        logits = net(x_test)
    return (logits.argmax(1) == y_test).float().mean().item(), F.cross_entropy(logits, y_test).item()


gen = torch.Generator().manual_seed(1)
x_train, y_train = make(N, 0.15, gen)
x_test, y_test = make(2000, 0.0, gen)  # clean labels for the test

acc, nll = train(FLOOD)
print(f"test accuracy {acc:.3f} nll {nll:.3f}")
