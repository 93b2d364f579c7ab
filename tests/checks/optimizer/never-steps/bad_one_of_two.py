import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
first = torch.optim.Adam(encoder.parameters(), lr=1e-3)
second = torch.optim.Adam(decoder.parameters(), lr=1e-3)  # found

for _ in range(24):
    inputs = torch.randn(32, 6)
    loss = mse_loss(decoder(encoder(inputs)), inputs)
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
