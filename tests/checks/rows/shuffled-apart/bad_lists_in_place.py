import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
random.seed(0)
inputs = torch.randn(320, 6).tolist()
labels = [int(sum(row) > 0) for row in inputs]
random.shuffle(inputs)
random.shuffle(labels)  # found
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for start in range(0, 320, 32):
    rows = slice(start, start + 32)
    loss = cross_entropy(model(torch.tensor(inputs[rows])), torch.tensor(labels[rows]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
