import torch
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import LinearLR

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=40)  # found
inputs = torch.randn(320, 3)
targets = inputs.sum(1, keepdim=True)

for _ in range(4):
    for picked in torch.randperm(320).split(32):
        optimizer.zero_grad()
        mse_loss(model(inputs[picked]), targets[picked]).backward()
        optimizer.step()
