import random

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

random.seed(0)
torch.manual_seed(0)
inputs = torch.randn(80, 8)
batches = list(DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=16, shuffle=True))

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for _ in range(6):
    random.shuffle(batches)
    for rows, labels in batches:
        optimizer.zero_grad()
        cross_entropy(model(rows), labels).backward()
        optimizer.step()
