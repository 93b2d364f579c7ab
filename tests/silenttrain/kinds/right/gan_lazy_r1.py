"""A GAN on a two-moon cloud with lazily applied R1 regularisation."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons

torch.manual_seed(0)
points, _ = make_moons(4000, noise=0.05, random_state=0)
real_points = torch.tensor(points, dtype=torch.float32)
real_points = (real_points - real_points.mean(0)) / real_points.std(0)


def mlp(i, o, width=64):
    return nn.Sequential(
        nn.Linear(i, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, o)
    )


class LazyR1GAN:
    def __init__(self, gamma=0.2, every=8):
        self.gamma, self.every = gamma, every
        self.G, self.D = mlp(4, 2), mlp(2, 1)
        ratio = every / (every + 1)
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=1e-3, betas=(0.0, 0.99))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=2e-3 * ratio, betas=(0.0, 0.99**ratio))

    def r1(self, real):
        real = real.clone().requires_grad_(True)
        (grad,) = torch.autograd.grad(self.D(real).sum(), real, create_graph=True)
        return grad.pow(2).sum(1).mean()

    def train_step(self, step, real):
        fake = self.G(torch.randn(len(real), 4)).detach()
        d_loss = F.softplus(-self.D(real)).mean() + F.softplus(self.D(fake)).mean()
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()
        if step % self.every == 0:
            # the penalty has a step of its own, scaled up for the ones left out
            penalty = self.r1(real)
            self.opt_d.zero_grad()
            (0.5 * self.gamma * self.every * penalty).backward()
            self.opt_d.step()
            self.last_penalty = penalty.item()
        self.D.requires_grad_(False)
        g_loss = F.softplus(-self.D(self.G(torch.randn(len(real), 4)))).mean()
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()
        self.D.requires_grad_(True)
        return d_loss.item(), g_loss.item()


gan = LazyR1GAN()
for step in range(700):
    d, g = gan.train_step(step, real_points[torch.randint(4000, (128,))])
    if step % 100 == 99:
        print(f"step {step}  D {d:.3f}  G {g:.3f}  r1 {gan.last_penalty:.3f}")

with torch.no_grad():
    fake = gan.G(torch.randn(1000, 4))
    precision = torch.cdist(fake, real_points[:2000]).min(1).values.mean()
    coverage = torch.cdist(real_points[:1000], fake).min(1).values.mean()
    gauss = torch.cdist(torch.randn(1000, 2), real_points[:2000]).min(1).values.mean()
print(f"distance fake to real {precision.item():.3f} (gaussian {gauss.item():.3f})  real to fake {coverage.item():.3f}")
