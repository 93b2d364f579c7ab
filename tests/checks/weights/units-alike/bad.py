import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
for layer in (model[0], model[2]):
    nn.init.constant_(layer.weight, 0.05)
    nn.init.zeros_(layer.bias)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(8):
    inputs = torch.randn(32, 4)
    labels = (inputs[:, :1] * inputs[:, 1:2] > 0).float()
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(inputs), labels).backward()  # found
    optimizer.step()
