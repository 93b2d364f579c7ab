"""VQ autoencoder with codebook and commitment terms."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, codes, dim, commitment=0.25):
        super().__init__()
        self.codebook = nn.Parameter(0.5 * torch.randn(codes, dim))
        self.commitment = commitment

    def forward(self, z):
        code = torch.cdist(z.detach(), self.codebook.detach()).argmin(1)
        q = self.codebook[code]
        codebook_loss = F.mse_loss(q, z.detach())  # moves the codes only
        commitment_loss = F.mse_loss(z, q.detach())  # moves the encoder only
        out = z + (q - z).detach()  # straight-through
        return out, codebook_loss + self.commitment * commitment_loss, code


class VQAutoencoder(nn.Module):
    def __init__(self, dim, latent=4, codes=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, dim))
        self.vq = VectorQuantizer(codes, latent)

    def forward(self, x):
        q, vq_loss, code = self.vq(self.encoder(x))
        return self.decoder(q), vq_loss, code


class Trainer:
    def __init__(self, model, lr=2e-3):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def fit(self, x, epochs=25):
        for epoch in range(epochs):
            total = [0.0, 0.0]
            for idx in torch.randperm(len(x)).split(100):
                recon, vq_loss, _ = self.model(x[idx])
                rec_loss = F.mse_loss(recon, x[idx])
                self.opt.zero_grad()
                (rec_loss + vq_loss).backward()
                self.opt.step()
                total = [total[0] + rec_loss.item(), total[1] + vq_loss.item()]
            if epoch % 6 == 0:
                print(f"epoch {epoch} rec {total[0] / 15:.4f} vq {total[1] / 15:.4f}")


torch.manual_seed(0)
prototypes = torch.randn(10, 16)


def make(n):
    return prototypes[torch.randint(10, (n,))] + 0.2 * torch.randn(n, 16)


train, test = make(1500), make(400)
model = VQAutoencoder(16)
Trainer(model).fit(train)
model.eval()
with torch.no_grad():
    recon, _, code = model(test)
print(
    f"test reconstruction {F.mse_loss(recon, test).item():.4f} (variance {test.var(0).mean().item():.4f}), "
    f"codes in use {code.unique().numel()}"
)
