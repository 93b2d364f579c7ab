import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
base = torch.randn(200, 6)
target = base.sum(1)


class Jittered(Dataset):
    def __len__(self):
        return len(base)

    def __getitem__(self, row):
        with torch.random.fork_rng():
            torch.manual_seed(row)
            jitter = 0.1 * torch.randn(6)
        return base[row] + jitter, target[row]


model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    torch.manual_seed(100 + epoch)
    for x, y in DataLoader(Jittered(), batch_size=20, shuffle=True):
        optimizer.zero_grad()
        mse_loss(model(x).squeeze(1), y).backward()
        optimizer.step()
