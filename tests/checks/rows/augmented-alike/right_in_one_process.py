# There is no worker.
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Noise:
    def __init__(self):
        self.random = np.random.default_rng(0)

    def __call__(self, row):
        return row + torch.from_numpy(self.random.normal(scale=0.1, size=4)).float()


class Leaves(Dataset):
    def __init__(self):
        self.rows = torch.randn(64, 4)
        self.transforms = [Noise()]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        for transform in self.transforms:
            row = transform(row)
        return row, int(self.rows[index, 0] > 0)


model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Leaves(), batch_size=8, shuffle=True)
for epoch in range(2):
    for row, target in loader:
        loss = nn.functional.cross_entropy(model(row), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
