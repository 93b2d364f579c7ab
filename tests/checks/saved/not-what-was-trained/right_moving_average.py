import copy

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(64, 4)
targets = inputs.sum(dim=1, keepdim=True).sin()
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
average = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
    for mean, value in zip(average.parameters(), model.parameters(), strict=True):
        mean.data.mul_(0.99).add_(value.data, alpha=0.01)
with torch.no_grad():
    print(nn.functional.mse_loss(average(inputs), targets).item())
