"""A small VAE with KL annealing, class-based trainer."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, dim, latent=2):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, 64), nn.ReLU())
        self.mu, self.logvar = nn.Linear(64, latent), nn.Linear(64, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


class VAETrainer:
    def __init__(self, model, epochs=40, warmup_epochs=50, max_beta=1.0, lr=2e-3):
        self.model, self.epochs = model, epochs
        self.warmup_epochs, self.max_beta = warmup_epochs, max_beta
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def beta(self, epoch):
        return self.max_beta * min(1, epoch // self.warmup_epochs)

    def losses(self, x):
        recon, mu, logvar = self.model(x)
        rec = F.mse_loss(recon, x, reduction="none").sum(1).mean() / (2 * 0.1)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        return rec, kl

    def fit(self, data, batch=100):
        for epoch in range(self.epochs):
            self.model.train()
            beta, sums, n = self.beta(epoch), [0.0, 0.0], 0
            for idx in torch.randperm(len(data)).split(batch):
                rec, kl = self.losses(data[idx])
                loss = rec + beta * kl
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                sums = [sums[0] + rec.item(), sums[1] + kl.item()]
                n += 1
            if epoch % 10 == 0 or epoch == self.epochs - 1:
                print(f"epoch {epoch} rec {sums[0] / n:.3f} kl {sums[1] / n:.3f}")

    @torch.no_grad()
    def evaluate(self, data, mixing):
        self.model.eval()
        rec, kl = self.losses(data)
        samples = self.model.dec(torch.randn(1000, 2))
        gap = (samples.std(0) - data.std(0)).abs().mean().item()
        return rec.item(), kl.item(), gap


torch.manual_seed(0)
mixing = torch.randn(2, 12)
make = lambda n: torch.tanh(torch.randn(n, 2) @ mixing) + 0.3 * torch.randn(n, 12)
train, test = make(1500), make(500)

trainer = VAETrainer(VAE(12))
trainer.fit(train)
rec, kl, gap = trainer.evaluate(test, mixing)
print(f"test rec {rec:.3f} kl {kl:.3f} negative elbo {rec + kl:.3f} sample spread gap {gap:.3f}")
