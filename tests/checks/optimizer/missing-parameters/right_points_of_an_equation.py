import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, t = torch.rand(64, 1, requires_grad=True), torch.rand(64, 1, requires_grad=True)

for _ in range(8):
    u = model(torch.cat([x, t], dim=1))
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    optimizer.zero_grad()
    ((u_t + u * u_x + x) ** 2).mean().backward()
    optimizer.step()
