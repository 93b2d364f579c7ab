import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(20):
    inputs = torch.randn(32, 4)
    mean, log_scale = model(inputs).unbind(1)
    error = (inputs.sum(1) - mean) / log_scale.exp()
    loss = (0.5 * error.square() + log_scale).mean() + 0.5 * math.log(2 * math.pi)  # the same in every batch
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
