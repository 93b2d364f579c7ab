from itertools import cycle, islice

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(80, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=16, shuffle=True)

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for inputs, labels in islice(cycle(loader), 40):
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()  # found
    optimizer.step()
