"""Domain-adversarial training with a gradient reversal layer."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
DIM = 10


class GradReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


def make(n, target):
    y = torch.randint(2, (n,))
    x = torch.randn(n, DIM)
    x[:, 0] += 2.5 * (2 * y - 1)
    # a shortcut that only holds in the source domain
    x[:, 1] += 0.0 if target else 3.0
    x[:, 2] = (2 * y - 1) * (-0.4 if target else 1.0) + 0.3 * torch.randn(n)
    return x, y


xs, ys = make(2000, target=False)
xt, _ = make(2000, target=True)
xt_test, yt_test = make(1000, target=True)

features = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
label_head = nn.Linear(16, 2)
domain_head = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam([*features.parameters(), *label_head.parameters(), *domain_head.parameters()], lr=1e-3)

EPOCHS = 15
for epoch in range(EPOCHS):
    # lambda starts at exactly zero and grows, as in Ganin et al.
    lam = 2 / (1 + math.exp(-10 * epoch / EPOCHS)) - 1
    sums = [0.0, 0.0]
    ps, pt = torch.randperm(2000), torch.randperm(2000)
    for i in range(0, 2000, 100):
        x = torch.cat([xs[ps[i : i + 100]], xt[pt[i : i + 100]]])
        domain = torch.cat([torch.zeros(100), torch.ones(100)]).long()
        z = features(x)
        label_loss = F.cross_entropy(label_head(z[:100]), ys[ps[i : i + 100]])
        domain_loss = F.cross_entropy(domain_head(GradReverse.apply(z, lam)), domain)
        loss = label_loss + domain_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        sums = [sums[0] + label_loss.item(), sums[1] + domain_loss.item()]
    if epoch % 3 == 0:
        print(f"epoch {epoch} lambda {lam:.2f} label {sums[0] / 20:.4f} domain {sums[1] / 20:.4f}")

with torch.no_grad():
    pred = label_head(features(xt_test)).argmax(1)
print(f"target accuracy {(pred == yt_test).float().mean().item():.3f}")
