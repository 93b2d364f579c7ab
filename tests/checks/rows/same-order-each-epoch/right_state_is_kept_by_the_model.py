import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRU(1, 8, batch_first=True), nn.Linear(8, 1)
        self.state = None

    def forward(self, window):
        states, last = self.cell(window, self.state)
        self.state = last.detach()
        return self.head(states)


torch.manual_seed(0)
series = torch.sin(torch.arange(161) * 0.3)
windows = TensorDataset(series[:-1].view(10, 16, 1), series[1:].view(10, 16, 1))  # each goes on where another ends
loader = DataLoader(windows, batch_size=1)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(3):
    model.state = None
    for window, following in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(window), following).backward()
        optimizer.step()
