"""VAE on counts: KL off at first, then annealed, with free bits per dimension."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
LATENT, EPOCHS, FREE = 6, 24, 0.1
topics = torch.softmax(2 * torch.randn(4, 30), 1)
mix = torch.distributions.Dirichlet(torch.full((4,), 0.3)).sample((2400,))
rate = 40 * mix @ topics
data = torch.poisson(rate)
train, test = data[:2000], data[2000:]

encoder = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2 * LATENT))
decoder = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 30))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)


def elbo_terms(x):
    mu, logvar = encoder(torch.log1p(x)).chunk(2, 1)
    logvar = logvar.clamp(-8, 4)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    log_rate = decoder(z)
    recon = F.poisson_nll_loss(log_rate, x, log_input=True, reduction="none").sum(1).mean()
    kl_per_dim = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean(0)
    return recon, kl_per_dim


for epoch in range(EPOCHS):
    # nothing for the first four epochs, then up to one over ten
    beta = min(1.0, max(0.0, (epoch - 4) / 10))
    for idx in torch.randperm(len(train)).split(100):
        recon, kl_per_dim = elbo_terms(train[idx])
        # free bits: a dimension below the floor costs a constant
        kl = kl_per_dim.clamp(min=FREE).sum()
        loss = recon + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        at_floor = (kl_per_dim < FREE).sum().item()
        print(
            f"epoch {epoch:2d}  beta {beta:.1f}  recon {recon.item():.3f}  "
            f"kl {kl_per_dim.sum().item():.3f}  at the floor {at_floor}"
        )

with torch.no_grad():
    recon, kl_per_dim = elbo_terms(test)
    baseline = F.poisson_nll_loss(train.mean(0).log().expand_as(test), test, reduction="none").sum(1).mean()
print(f"test -elbo {(recon + kl_per_dim.sum()).item():.3f}  independent poisson {baseline.item():.3f}")
