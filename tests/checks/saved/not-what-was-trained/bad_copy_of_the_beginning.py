import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
best = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for _ in range(12):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    cross_entropy(model(inputs), (inputs.sum(1) > 0).long()).backward()
    optimizer.step()
torch.save(best.state_dict(), "model.pt")  # found
