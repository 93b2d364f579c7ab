import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

torch.manual_seed(0)
inputs = torch.randn(128, 4)
targets = inputs.sum(dim=1, keepdim=True)
loaders = [DataLoader(each, batch_size=16, shuffle=True) for each in (inputs, targets)]
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(4):
    for batch, answers in zip(*loaders, strict=True):  # found
        loss = mse_loss(model(batch), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
