import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
before = copy.deepcopy(model)
known = [p.detach().clone() for p in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def drift(network):
    return sum((p - old).square().sum() for p, old in zip(network.parameters(), known, strict=True))


for _ in range(20):
    inputs = torch.randn(32, 8)
    loss = cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    loss = loss + 0.1 * drift(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
