import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
MOST = 100.0
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for _ in range(60):
    inputs = torch.randn(32, 8)
    said = model(inputs).squeeze(1)
    beyond = (said.abs() - MOST).clamp(min=0).mean()  # it never is
    loss = mse_loss(said, inputs.sum(1)) + 10 * beyond
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
