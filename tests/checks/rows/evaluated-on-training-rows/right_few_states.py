import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
states = torch.eye(16)
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(6):
    visited = states[torch.randint(0, 16, (32,))]
    loss = mse_loss(model(visited), visited.argmax(1, keepdim=True) / 16)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        print("error on the corners:", mse_loss(model(states[8:]).squeeze(1), torch.arange(8, 16) / 16).item())
