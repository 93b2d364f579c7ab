"""A GAN on a mixture of Gaussians, the generated batch detached for the discriminator."""

import math

import torch
from torch import nn

torch.manual_seed(1)
MODES = 6
ANGLES = torch.arange(MODES) * 2 * math.pi / MODES
CENTRES = 1.5 * torch.stack([ANGLES.cos(), ANGLES.sin()], dim=1)


def real_batch(n):
    return CENTRES[torch.randint(0, MODES, (n,))] + 0.08 * torch.randn(n, 2)


def block(n_in, n_out, hidden=96):
    return nn.Sequential(
        nn.Linear(n_in, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, n_out),
    )


G, D = block(8, 2), block(2, 1)
g_opt = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(256, 1), torch.zeros(256, 1)

for it in range(190):
    real = real_batch(256)
    fake = G(torch.randn(256, 8))

    d_loss = bce(D(real), 0.9 * ones) + bce(D(fake.detach()), zeros)
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    g_loss = bce(D(fake), ones)
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    if it % 38 == 0:
        print(f"{it:4d}  D {d_loss.item():.3f}  G {g_loss.item():.3f}")

with torch.no_grad():
    sample = G(torch.randn(2000, 8))
distance, mode = torch.cdist(sample, CENTRES).min(dim=1)
share = torch.bincount(mode, minlength=MODES) / len(sample)
print(f"mean distance to a centre {distance.mean():.3f}, modes with over 3%: {(share > 0.03).sum().item()} of {MODES}")
