import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
signal = torch.randn(2561).cumsum(dim=0).reshape(-1, 1)
loader = DataLoader(TensorDataset(signal[:-1], signal[1:]), batch_size=64)
cell, head = torch.nn.GRU(1, 12), torch.nn.Linear(12, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)

for _ in range(4):
    state = torch.zeros(1, 12)
    for values, following in loader:
        outputs, state = cell(values, state.detach())
        optimizer.zero_grad()
        mse_loss(head(outputs), following).backward()
        optimizer.step()
