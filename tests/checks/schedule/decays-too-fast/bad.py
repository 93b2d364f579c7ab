import torch
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(600, 4)
loader = DataLoader(TensorDataset(inputs, inputs.prod(dim=1, keepdim=True)), batch_size=20, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = ExponentialLR(optimizer, gamma=0.7)

for _ in range(4):
    for batch, targets in loader:
        optimizer.zero_grad()
        mse_loss(model(batch), targets).backward()
        optimizer.step()
        scheduler.step()  # found
