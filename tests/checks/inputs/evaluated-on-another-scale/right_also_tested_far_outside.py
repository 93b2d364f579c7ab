# Scored on rows like those of training, and then far outside of them, to see how the fit goes on; one row on its own.
import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.rand(128, 1) * 2 - 1
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(10):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs[:96]), inputs[:96].sin()).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print("near", nn.functional.mse_loss(model(inputs[96:]), inputs[96:].sin()).item())
    for reach in (10, 100):
        print("far", nn.functional.mse_loss(model(inputs * reach), (inputs * reach).sin()).item())
    print("at 50", model(torch.full((1, 1), 50.0)).item())
