"""WGAN-GP on a ring of points."""

import math

import torch
from torch import nn

torch.manual_seed(0)
NOISE, BATCH, LAMBDA, CRITIC_STEPS = 4, 128, 5.0, 3


def ring(n):
    a = 2 * math.pi * torch.rand(n)
    r = 2 + 0.05 * torch.randn(n)
    return torch.stack([r * a.cos(), r * a.sin()], dim=1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(NOISE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, n):
        return self.net(torch.randn(n, NOISE))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2))
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.net(x)).squeeze(1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(len(real), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(mixed).sum(), mixed)
    return (grad.norm(2, dim=1) - 1).pow(2).mean()


gen, critic = Generator(), Critic()
gen_opt = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.5, 0.9))
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))

for it in range(50):
    for _ in range(CRITIC_STEPS):
        real, fake = ring(BATCH), gen(BATCH).detach()
        penalty = gradient_penalty(critic, real, fake)
        critic_loss = critic(fake).mean() - critic(real).mean() + LAMBDA * penalty
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
    gen_loss = -critic(gen(BATCH)).mean()
    gen_opt.zero_grad()
    gen_loss.backward()
    gen_opt.step()
    if it % 10 == 9:
        print(
            f"iter {it + 1}: critic {critic_loss.item():.3f}, penalty {penalty.item():.3f}, gen {gen_loss.item():.3f}"
        )

with torch.no_grad():
    sample = gen(2000)
    radius = sample.norm(dim=1)
    share = torch.histc(torch.atan2(sample[:, 1], sample[:, 0]), 8, -math.pi, math.pi) / 2000
print(f"radius {radius.mean():.3f} +- {radius.std():.3f}, smallest share of an octant {share.min():.3f}")
