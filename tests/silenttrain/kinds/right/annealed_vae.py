"""VAE on heartbeat-like curves; the KL weight is zero in the first epoch and grows to one."""

import torch
from torch import nn

torch.manual_seed(4)
N, DIM, LATENT, EPOCHS, WARMUP = 1024, 32, 3, 16, 8


def beats(n):
    t = torch.linspace(0, 1, DIM)
    centre = 0.4 + 0.2 * torch.rand(n, 1)
    width = 0.03 + 0.04 * torch.rand(n, 1)
    height = 1 + 0.2 * torch.randn(n, 1)
    return height * torch.exp(-0.5 * ((t - centre) / width) ** 2) + 0.05 * torch.randn(n, DIM)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.mu, self.logvar = nn.Linear(64, LATENT), nn.Linear(64, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, DIM))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def kl_divergence(mu, logvar):
    return 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()


def beta_at(epoch):
    return min(1.0, epoch / WARMUP)


data, held_out = beats(N), beats(256)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(EPOCHS):
    beta = beta_at(epoch)
    for batch in data[torch.randperm(N)].split(128):
        out, mu, logvar = model(batch)
        recon = (out - batch).pow(2).sum(1).mean() / (2 * 0.1**2)
        kl = kl_divergence(mu, logvar)
        loss = recon + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d}  beta {beta:.2f}  reconstruction {recon.item():.2f}  kl {kl.item():.2f}")

with torch.no_grad():
    out, mu, logvar = model(held_out)
    samples = model.decoder(torch.randn(500, LATENT))
    nearest = torch.cdist(samples, held_out).min(1).values.mean()
print(f"held-out mse {(out - held_out).pow(2).mean():.4f}, sample to data {nearest:.3f}")
