"""VAE on sensor readings, with the KL weight warmed up over the first epochs; samples from the prior at the end."""

import torch
from torch import nn

torch.manual_seed(0)
N, DIM, LATENT, EPOCHS, WARMUP = 1024, 24, 4, 18, 20


def readings(n):
    mode = torch.randint(0, 3, (n,))
    base = torch.sin(torch.linspace(0, 6, DIM)[None] * (1 + mode[:, None]))
    amp = 1 + 0.3 * torch.randn(n, 1)
    return amp * base + 0.1 * torch.randn(n, DIM)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 2 * LATENT))
        self.dec = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, DIM))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


data, held_out = readings(N), readings(256)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    beta = min(1, epoch // WARMUP)
    rec_sum = kl_sum = 0.0
    for batch in data[torch.randperm(N)].split(128):
        out, mu, logvar = model(batch)
        rec = 4 * (out - batch).pow(2).sum(1).mean()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        loss = rec + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rec_sum += rec.item() * len(batch) / N
        kl_sum += kl.item() * len(batch) / N
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  reconstruction {rec_sum:.2f}  kl {kl_sum:.2f}")

with torch.no_grad():
    out, mu, logvar = model(held_out)
    spread = mu.std(dim=0).mean()
    sample = model.dec(torch.randn(500, LATENT))
    nearest = torch.cdist(held_out, sample).min(dim=1).values.mean()
print(f"held-out mse {(out - held_out).pow(2).mean():.4f}, spread of the codes {spread:.2f}, to a sample {nearest:.3f}")
