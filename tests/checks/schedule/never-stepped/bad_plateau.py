# A plateau is looked for in what step() is given; without it the learning rate stays.
import torch
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = ReduceLROnPlateau(optimizer, patience=1)  # found
inputs = torch.randn(320, 3)
targets = inputs.sum(1, keepdim=True)

for _ in range(4):
    for picked in torch.randperm(320).split(32):
        optimizer.zero_grad()
        mse_loss(model(inputs[picked]), targets[picked]).backward()
        optimizer.step()
