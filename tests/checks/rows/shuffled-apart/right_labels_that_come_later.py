import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
AHEAD = 3
demand = torch.randn(400).cumsum(0)
weather = torch.stack([demand, demand.roll(1), demand.roll(2)], dim=1)
model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(3):
    for picked in torch.randperm(397).split(32):
        loss = mse_loss(model(weather[picked]).squeeze(1), demand[picked + AHEAD])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
