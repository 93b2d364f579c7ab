import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
times = torch.linspace(0, 1, 120)[:, None].repeat(1, 3) + 0.01 * torch.randn(120, 3)
values = times.sin().sum(1)
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(4):
    for picked in torch.randperm(90).split(15):
        loss = mse_loss(model(times[picked]).squeeze(1), values[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print("on past and future:", mse_loss(model(times).squeeze(1), values).item())
        print("on the past:", mse_loss(model(times[:90]).squeeze(1), values[:90]).item())
        print("on the future:", mse_loss(model(times[90:]).squeeze(1), values[90:]).item())
