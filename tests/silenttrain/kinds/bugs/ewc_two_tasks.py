"""Elastic weight consolidation: learn task A, then task B without forgetting A."""

import copy

import torch
from torch import nn

torch.manual_seed(1)
DIM, CLASSES, STRENGTH = 20, 4, 3000.0


def make_task(seed):
    g = torch.Generator().manual_seed(seed)
    centres = 0.6 * torch.randn(CLASSES, DIM, generator=g)

    def draw(n):
        y = torch.randint(0, CLASSES, (n,))
        return centres[y] + torch.randn(n, DIM), y

    return draw


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def fisher_diagonal(net, x):
    fisher = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    for row in x:
        logits = net(row[None])
        label = torch.distributions.Categorical(logits=logits).sample()
        net.zero_grad()
        nn.functional.cross_entropy(logits, label).backward()
        for name, p in net.named_parameters():
            fisher[name] += p.grad.pow(2) / len(x)
    return fisher


class EWC:
    def __init__(self, net, x):
        self.net = copy.deepcopy(net)
        self.fisher = fisher_diagonal(self.net, x)
        self.star = {name: p.detach().clone() for name, p in self.net.named_parameters()}

    def penalty(self):
        return sum((self.fisher[n] * (p - self.star[n]).pow(2)).sum() for n, p in self.net.named_parameters())


def train(net, x, y, steps, ewc=None):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for step in range(steps):
        rows = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        if ewc is not None:
            loss = loss + 0.5 * STRENGTH * ewc.penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"  step {step:3d} loss {loss.item():.4f}")


task_a, task_b = make_task(10), make_task(11)
xa, ya = task_a(600)
xb, yb = task_b(600)
xa_test, ya_test = task_a(400)
xb_test, yb_test = task_b(400)
net = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, CLASSES))
print("task A")
train(net, xa, ya, 80)
before = accuracy(net, xa_test, ya_test)
ewc = EWC(net, xa[:200])
print("task B")
train(net, xb, yb, 80, ewc)
after_a, after_b = accuracy(net, xa_test, ya_test), accuracy(net, xb_test, yb_test)
print(f"A before {before:.3f}, A after {after_a:.3f}, B after {after_b:.3f}")
