from itertools import islice

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(96, 6)
labels = (rows.sum(1) > 0).long()


class Groups:
    """Batches of rows that no batch before has."""

    def __iter__(self):
        left = dict.fromkeys(torch.randperm(96).tolist())
        while left:
            batch = list(islice(left, 12))
            left = dict.fromkeys(row for row in left if row not in batch)
            yield batch

    def __len__(self):
        return 8


model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(rows, labels), batch_sampler=Groups())
for _ in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs), targets).backward()
        optimizer.step()
