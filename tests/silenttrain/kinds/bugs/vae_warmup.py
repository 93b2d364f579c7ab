"""A small VAE with a warm-up of the KL weight."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
LATENT, EPOCHS = 4, 20
mix = torch.randn(3, 20)
data = torch.sigmoid(torch.randn(2400, 3) @ mix + 0.1 * torch.randn(2400, 20))
train, test = data[:2000], data[2000:]


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(20, 64), nn.ReLU())
        self.mu = nn.Linear(64, LATENT)
        self.logvar = nn.Linear(64, LATENT)
        self.dec = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 20))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def losses(model, x):
    logits, mu, logvar = model(x)
    recon = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return recon, kl


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(EPOCHS):
    # increase the weight of the KL slowly towards one
    kl_weight = min(1, epoch // EPOCHS)
    model.train()
    for idx in torch.randperm(len(train)).split(100):
        recon, kl = losses(model, train[idx])
        loss = recon + kl_weight * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        print(f"epoch {epoch:2d}  recon {recon.item():.3f}  kl {kl.item():.3f}")

model.eval()
with torch.no_grad():
    recon, kl = losses(model, test)
    _, mu, logvar = model(test)
    aggregate = (mu.var(0) + logvar.exp().mean(0)).mean()
    samples = torch.sigmoid(model.dec(torch.randn(1000, LATENT)))
    mismatch = (samples.std(0) - test.std(0)).abs().mean()
print(
    f"test elbo {-(recon + kl).item():.3f}  kl {kl.item():.3f}  "
    f"aggregate posterior variance {aggregate.item():.2f}  sample std error {mismatch.item():.4f}"
)
