import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

torch.manual_seed(0)
inputs = torch.randn(384, 4)
targets = inputs.sum(dim=1, keepdim=True)
loaders = [DataLoader(each, batch_size=16) for each in (inputs, targets)]  # both in the order of the rows
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for batch, answers in zip(*loaders, strict=True):
    loss = mse_loss(model(batch), answers)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
