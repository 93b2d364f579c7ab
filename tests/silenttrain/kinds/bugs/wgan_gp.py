"""WGAN with gradient penalty on a 2-D ring of Gaussians."""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)
LATENT, BATCH, N_CRITIC, LAMBDA_GP, ITERS = 4, 64, 3, 10.0, 350


def real_batch(n):
    angle = 2 * math.pi * torch.randint(8, (n,)) / 8
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.05 * torch.randn(n, 2)


generator = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))


def gradient_penalty(real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    score = critic(mixed)
    grads = torch.autograd.grad(outputs=score, inputs=mixed, grad_outputs=torch.ones_like(score), retain_graph=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


def mean_slope(n=500):
    x = (3 * torch.rand(n, 2) - 1.5).requires_grad_(True)
    g = torch.autograd.grad(critic(x).sum(), x)[0]
    return g.norm(dim=1).mean().item()


for it in range(ITERS):
    for _ in range(N_CRITIC):
        real = real_batch(BATCH)
        fake = generator(torch.randn(BATCH, LATENT)).detach()
        gp = gradient_penalty(real, fake)
        critic_loss = critic(fake).mean() - critic(real).mean() + LAMBDA_GP * gp
        opt_c.zero_grad()
        critic_loss.backward()
        opt_c.step()

    gen_loss = -critic(generator(torch.randn(BATCH, LATENT))).mean()
    opt_g.zero_grad()
    gen_loss.backward()
    opt_g.step()
    if it % 70 == 0:
        print(f"iter {it} critic {critic_loss.item():.3f} gen {gen_loss.item():.3f} gp {gp.item():.3f}")

generator.eval()
with torch.no_grad():
    samples = generator(torch.randn(1000, LATENT))
    radius_error = (samples.norm(dim=1) - 1.5).abs().mean().item()
    nearest = torch.cdist(real_batch(1000), samples).min(1).values.mean().item()
print(f"critic slope {mean_slope():.3f}, radius error {radius_error:.3f}, real-to-sample distance {nearest:.3f}")
