"""VAE with cyclical annealing: the KL weight is zero at the start of every cycle."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
EPOCHS, CYCLES, DIM, LATENT = 45, 3, 12, 3

mix = torch.randn(2, DIM)


def make(n):
    return torch.tanh(torch.randn(n, 2) @ mix) + 0.2 * torch.randn(n, DIM)


def beta_at(epoch):
    """Fu et al. 2019: 0 for a third of the cycle, then a ramp, then 1."""
    where = (epoch % (EPOCHS // CYCLES)) / (EPOCHS // CYCLES)
    return min(1.0, max(0.0, (where - 1 / 3) * 3))


enc = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 2 * LATENT))
dec = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, DIM))
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=2e-3)


def terms(x):
    mu, logvar = enc(x).chunk(2, 1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    # Gaussian likelihood with variance 0.1, constants dropped
    rec = F.mse_loss(dec(z), x, reduction="sum") / len(x) / (2 * 0.1)
    kl = 0.5 * (mu**2 + logvar.exp() - 1 - logvar).sum(1).mean()
    return rec, kl


x_train, x_test = make(1500), make(500)
for epoch in range(EPOCHS):
    beta = beta_at(epoch)
    rec_sum = kl_sum = 0.0
    for idx in torch.randperm(len(x_train)).split(125):
        rec, kl = terms(x_train[idx])
        loss = rec + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        rec_sum += rec.item()
        kl_sum += kl.item()
    if epoch % 5 == 0 or epoch == EPOCHS - 1:
        print(f"epoch {epoch} beta {beta:.2f} rec {rec_sum / 12:.3f} kl {kl_sum / 12:.3f}")

with torch.no_grad():
    rec, kl = terms(x_test)
    spread = dec(torch.randn(2000, LATENT)).std(0).mean() / x_test.std(0).mean()
print(
    f"test negative elbo {rec.item() + kl.item():.3f} (rec {rec.item():.3f}, kl {kl.item():.3f}), "
    f"spread ratio {spread.item():.3f}"
)
