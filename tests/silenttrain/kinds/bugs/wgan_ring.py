"""WGAN with gradient penalty on a ring of Gaussians."""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)


def real_batch(n):
    k = torch.randint(8, (n,)).float() * (2 * math.pi / 8)
    return 2 * torch.stack([k.cos(), k.sin()], 1) + 0.05 * torch.randn(n, 2)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, o))


class WGANTrainer:
    def __init__(self, noise=4, lambda_gp=10.0, n_critic=3):
        self.noise, self.lambda_gp, self.n_critic = noise, lambda_gp, n_critic
        self.G, self.D = mlp(noise, 2), mlp(2, 1)
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=5e-4, betas=(0.5, 0.9))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=1e-3, betas=(0.5, 0.9))

    def fake(self, n):
        return self.G(torch.randn(n, self.noise))

    def gradient_penalty(self, real, fake):
        alpha = torch.rand(len(real), 1)
        mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        score = self.D(mixed)
        grad = torch.autograd.grad(outputs=score, inputs=mixed, grad_outputs=torch.ones_like(score), retain_graph=True)[
            0
        ]
        return ((grad.norm(2, dim=1) - 1) ** 2).mean()

    def critic_step(self, real):
        fake = self.fake(len(real)).detach()
        wasserstein = self.D(real).mean() - self.D(fake).mean()
        gp = self.gradient_penalty(real, fake)
        loss = -wasserstein + self.lambda_gp * gp
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return wasserstein.item(), gp.item()

    def generator_step(self, n):
        loss = -self.D(self.fake(n)).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()

    def fit(self, steps, batch=128):
        for step in range(steps):
            for _ in range(self.n_critic):
                w, gp = self.critic_step(real_batch(batch))
            self.generator_step(batch)
            if step % 100 == 99:
                print(f"step {step}  wasserstein {w:.3f}  penalty {gp:.3f}")

    @torch.no_grad()
    def evaluate(self, n=2000):
        radius = self.fake(n).norm(dim=1)
        return (radius - 2).abs().mean().item(), radius.max().item()


trainer = WGANTrainer()
trainer.fit(400)
error, largest = trainer.evaluate()
print(f"mean radius error {error:.3f}  largest radius {largest:.3f}")
