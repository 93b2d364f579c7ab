"""A small normalizing flow; the loss is a negative log density and falls far below zero."""

import math

import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, dim, flip):
        super().__init__()
        self.flip, self.half = flip, dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, 48), nn.ReLU(), nn.Linear(48, 2 * self.half))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        log_s, t = self.net(a).chunk(2, 1)
        log_s = torch.tanh(log_s)
        b = b * log_s.exp() + t
        out = torch.cat([b, a] if self.flip else [a, b], 1)
        return out, log_s.sum(1)


class Flow(nn.Module):
    def __init__(self, dim, layers=6):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.layers = nn.ModuleList(Coupling(dim, i % 2 == 1) for i in range(layers))

    @torch.no_grad()
    def start_from(self, x):
        self.shift.copy_(x.mean(0))
        self.log_scale.copy_(-x.std(0).log())

    def log_prob(self, x):
        z = (x - self.shift) * self.log_scale.exp()
        log_det = self.log_scale.sum().expand(len(x))
        for layer in self.layers:
            z, ld = layer(z)
            log_det = log_det + ld
        return -0.5 * (z.pow(2) + math.log(2 * math.pi)).sum(1) + log_det


class DensityTrainer:
    def __init__(self, flow, lr=5e-3):
        self.flow = flow
        self.opt = torch.optim.Adam(flow.parameters(), lr=lr)

    def fit(self, x, epochs=20):
        for epoch in range(epochs):
            total = 0.0
            for idx in torch.randperm(len(x)).split(100):
                loss = -self.flow.log_prob(x[idx]).mean()
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.flow.parameters(), 5.0)
                self.opt.step()
                total += loss.item() * len(idx)
            if epoch % 4 == 0:
                print(f"epoch {epoch} nll {total / len(x):.4f}")


def parts(n):
    # tolerances of machined parts in metres: tiny numbers, hence densities far above one
    a = 0.01 * torch.randn(n, 2)
    b = 40 * a.pow(2) + 0.002 * torch.randn(n, 2)
    return torch.cat([a, b], 1)


torch.manual_seed(0)
train, test = parts(2000), parts(1000)
flow = Flow(4)
flow.start_from(train)
DensityTrainer(flow).fit(train)
gauss = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.T))
with torch.no_grad():
    print(
        f"test nll of the flow {-flow.log_prob(test).mean().item():.3f}, "
        f"of a fitted Gaussian {-gauss.log_prob(test).mean().item():.3f}"
    )
