import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
WARMUP = 10
encoder, decoder = nn.Linear(8, 4), nn.Linear(2, 8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
rows = torch.randn(256, 8)

for epoch in range(8):
    beta = min(1.0, epoch // WARMUP)
    for batch in rows.split(64):
        mean, log_variance = encoder(batch).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        loss = mse_loss(decoder(code), batch) + beta * divergence  # found
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
