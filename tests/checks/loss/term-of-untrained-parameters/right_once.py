import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
before = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for update in range(20):
    inputs = torch.randn(32, 8)
    loss = cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    if update == 10:
        loss = loss + 0.1 * sum(p.square().sum() for p in before.parameters())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
