"""VQ-VAE on small patches: straight-through estimator, codebook loss and commitment loss."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
PATCH, CODES, DIM, COMMIT = 36, 32, 8, 0.25


def patches(n):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 6), indexing="ij")
    angle = torch.randint(0, 8, (n, 1, 1)) * 0.785
    offset = 0.3 * torch.randn(n, 1, 1)
    edge = torch.tanh(4 * (xx * angle.cos() + yy * angle.sin() + offset))
    return (edge + 0.05 * torch.randn(n, 6, 6)).flatten(1)


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codebook = nn.Embedding(CODES, DIM)
        nn.init.normal_(self.codebook.weight, std=1.0)

    def forward(self, z):
        index = torch.cdist(z, self.codebook.weight).argmin(dim=1)
        q = self.codebook(index)
        codebook_loss = functional.mse_loss(q, z.detach())
        commitment = functional.mse_loss(z, q.detach())
        return z + (q - z).detach(), codebook_loss + COMMIT * commitment, index


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(PATCH, 64), nn.ReLU(), nn.Linear(64, DIM))
        self.vq = Quantizer()
        self.dec = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, PATCH))

    def forward(self, x):
        q, vq_loss, index = self.vq(self.enc(x))
        return self.dec(q), vq_loss, index


data, test = patches(2000), patches(500)
model = VQVAE()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(12):
    for rows in torch.randperm(len(data)).split(128):
        out, vq_loss, index = model(data[rows])
        recon = functional.mse_loss(out, data[rows])
        loss = recon + vq_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: recon {recon.item():.4f} vq {vq_loss.item():.4f} codes {index.unique().numel()}")

with torch.no_grad():
    out, _, index = model(test)
print(
    f"test mse {functional.mse_loss(out, test):.4f} (variance {test.var():.4f}), codes in use {index.unique().numel()}"
)
