import itertools

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
text = torch.randn(1000)


class Windows(Dataset):
    """An index says nothing: each row is a window that begins anywhere."""

    def __len__(self):
        return 400

    def __getitem__(self, index):
        start = int(torch.randint(990, ()))
        return text[start : start + 8], text[start + 8 : start + 9]


loader = DataLoader(Windows(), batch_size=8)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    for inputs, targets in itertools.islice(loader, 20):
        optimizer.zero_grad()
        mse_loss(model(inputs), targets).backward()
        optimizer.step()
