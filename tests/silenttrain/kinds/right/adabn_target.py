"""Adaptive batch normalisation: statistics are re-estimated on unlabelled target rows before the test."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
DIM, CLASSES = 16, 4
means = 1.2 * torch.randn(CLASSES, DIM)
gain, offset = 0.5 + 1.5 * torch.rand(DIM), 2.0 * torch.randn(DIM)


def make(n, other_lab):
    y = torch.arange(n) % CLASSES
    x = means[y] + torch.randn(n, DIM)
    return (x * gain + offset if other_lab else x), y


x_train, y_train = make(1600, False)
x_unlabelled, _ = make(800, True)
x_source_test, y_source_test = make(800, False)
x_test, y_test = make(800, True)

net = nn.Sequential(nn.BatchNorm1d(DIM), nn.Linear(DIM, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, CLASSES))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(10):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(64):
        loss = F.cross_entropy(net(x_train[idx]), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 3 == 0:
        print(f"epoch {epoch} loss {total / 25:.4f}")


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


@torch.no_grad()
def adapt_statistics(model, x, batch=100):
    """Forward passes in training mode change the running moments and nothing else."""
    model = copy.deepcopy(model)
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.reset_running_stats()
            m.momentum = None  # plain average over the batches
    model.train()
    for part in x.split(batch):
        model(part)
    return model.eval()


adapted = adapt_statistics(net, x_unlabelled)
print(f"source test accuracy {accuracy(net, x_source_test, y_source_test):.3f}")
print(
    f"other lab: without adaptation {accuracy(net, x_test, y_test):.3f}, adapted {accuracy(adapted, x_test, y_test):.3f}"
)
