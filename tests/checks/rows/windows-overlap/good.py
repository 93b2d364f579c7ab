import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, Dataset, Subset

torch.manual_seed(0)
series = torch.arange(300.0).div(9).sin() + 0.1 * torch.randn(300)


class Windows(Dataset):
    def __len__(self):
        return len(series) - 12

    def __getitem__(self, begin):
        return series[begin : begin + 12], series[begin + 12]


data = Windows()
train, valid = Subset(data, range(230 - 12)), Subset(data, range(230, len(data)))
model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(3):
    for window, following in DataLoader(train, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        mse_loss(model(window).squeeze(1), following).backward()
        optimizer.step()
    with torch.no_grad():
        batches = DataLoader(valid, batch_size=64)
        total = sum(mse_loss(model(x).squeeze(1), y, reduction="sum").item() for x, y in batches)
    print(f"epoch {epoch}: {total / len(valid):.4f}")
