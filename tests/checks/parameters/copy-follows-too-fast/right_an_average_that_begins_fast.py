import copy

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(40):
    inputs = torch.randn(32, 4)
    with torch.no_grad():
        likely = average(inputs + 0.1 * torch.randn(32, 4))
    said = model(inputs)
    loss = mse_loss(said, inputs.sum(1, keepdim=True)) + 0.1 * mse_loss(said, likely)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    keep = min(0.99, 1 - 1 / (step + 1))
    with torch.no_grad():
        for mean, now in zip(average.parameters(), model.parameters(), strict=True):
            mean.lerp_(now, 1 - keep)
