"""VQ-VAE with the codebook and commitment losses of the original paper."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes, dim, commitment=0.25):
        super().__init__()
        self.codebook = nn.Parameter(0.5 * torch.randn(n_codes, dim))
        self.commitment = commitment

    def forward(self, z):
        codes = torch.cdist(z.detach(), self.codebook.detach()).argmin(1)
        quantized = self.codebook[codes]
        codebook_loss = F.mse_loss(quantized, z.detach())
        commitment_loss = F.mse_loss(z, quantized.detach())
        # straight-through: the decoder's gradient goes to the encoder
        passed = z + (quantized - z).detach()
        return passed, codes, codebook_loss, commitment_loss


class VQVAE(nn.Module):
    def __init__(self, dim=16, latent=4, n_codes=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, latent))
        self.quantizer = VectorQuantizer(n_codes, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 48), nn.ReLU(), nn.Linear(48, dim))

    def forward(self, x):
        passed, codes, codebook_loss, commitment_loss = self.quantizer(self.encoder(x))
        return self.decoder(passed), codes, codebook_loss, commitment_loss

    @torch.no_grad()
    def seed_codebook(self, x):
        z = self.encoder(x)
        pick = torch.randperm(len(z))[: len(self.quantizer.codebook)]
        self.quantizer.codebook.copy_(z[pick])


modes = torch.randn(12, 16)
x = modes[torch.randint(12, (2400,))] + 0.15 * torch.randn(2400, 16)
train, test = x[:2000], x[2000:]
model = VQVAE()
model.seed_codebook(train)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    for idx in torch.randperm(len(train)).split(100):
        recon, codes, codebook_loss, commitment_loss = model(train[idx])
        recon_loss = F.mse_loss(recon, train[idx])
        loss = recon_loss + codebook_loss + model.quantizer.commitment * commitment_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(
        f"epoch {epoch:2d}  recon {recon_loss.item():.4f}  codebook {codebook_loss.item():.4f}"
        f"  commitment {commitment_loss.item():.4f}  codes {codes.unique().numel()}"
    )

model.eval()
with torch.no_grad():
    recon, codes, _, _ = model(test)
print(
    f"test mse {F.mse_loss(recon, test).item():.4f}  variance {test.var(0).mean().item():.4f}  "
    f"codes used {codes.unique().numel()}"
)
