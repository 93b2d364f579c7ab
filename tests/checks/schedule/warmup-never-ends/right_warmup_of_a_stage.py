import torch
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(128, 4)
loader = DataLoader(TensorDataset(inputs, inputs[:, :1]), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def epoch(optimizer, scheduler):
    for features, targets in loader:
        optimizer.zero_grad()
        mse_loss(model(features), targets).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


model[0].requires_grad_(False)
optimizer = torch.optim.Adam(model[2].parameters(), lr=1e-2)
epoch(optimizer, LinearLR(optimizer, start_factor=0.01, total_iters=len(loader)))
model[0].requires_grad_(True)
epoch(torch.optim.Adam(model.parameters(), lr=1e-3), None)
