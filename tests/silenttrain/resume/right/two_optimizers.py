"""Train a small generator and a discriminator in turn, with an optimizer each; both, and torch's generator, are
in the checkpoint.
"""

import pathlib

import torch
from torch import nn

torch.manual_seed(42)
circle = torch.linspace(0, 6.28, 90)
real = torch.stack([circle.cos(), circle.sin()], dim=1)
generator = nn.Sequential(nn.Linear(3, 10), nn.LeakyReLU(0.2), nn.Linear(10, 2))
discriminator = nn.Sequential(nn.Linear(2, 10), nn.LeakyReLU(0.2), nn.Linear(10, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
parts = {"generator": generator, "discriminator": discriminator, "opt_g": opt_g, "opt_d": opt_d}
target = pathlib.Path("gan.ckpt")

start = 0
if target.exists():
    stored = torch.load(target)
    for name, part in parts.items():
        part.load_state_dict(stored[name])
    start = stored["epoch"]
    torch.set_rng_state(stored["rng"])

for epoch in range(start, 3):
    for batch in real[torch.randperm(len(real))].split(10):
        ones, zeros = torch.ones(len(batch), 1), torch.zeros(len(batch), 1)
        fake = generator(torch.randn(len(batch), 3))
        opt_d.zero_grad()
        (bce(discriminator(batch), ones) + bce(discriminator(fake.detach()), zeros)).backward()
        opt_d.step()
        opt_g.zero_grad()
        bce(discriminator(fake), ones).backward()
        opt_g.step()
    content = {name: part.state_dict() for name, part in parts.items()}
    content.update(epoch=epoch + 1, rng=torch.get_rng_state())
    scratch = target.with_suffix(".writing")
    torch.save(content, scratch)
    scratch.replace(target)

torch.save(generator.state_dict(), "generator.pt")
