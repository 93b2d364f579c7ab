import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

torch.manual_seed(0)
noise = torch.randn(8, 6)
loader = DataLoader(torch.randn(64, 3), batch_size=8, shuffle=True)
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for targets in loader:
    optimizer.zero_grad()
    mse_loss(model(noise), targets).backward()
    optimizer.step()
