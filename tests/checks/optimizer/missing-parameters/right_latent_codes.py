import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
generator = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 6))
picture = torch.randn(2, 6)
codes = torch.zeros(2, 4, requires_grad=True)
optimizer = torch.optim.Adam([codes], lr=0.1)

for _ in range(10):
    optimizer.zero_grad()
    mse_loss(generator(codes), picture).backward()
    optimizer.step()
