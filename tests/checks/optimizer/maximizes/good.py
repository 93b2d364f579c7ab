import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(8):
    inputs = torch.randn(24, 3)
    optimizer.zero_grad()
    loss = mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
