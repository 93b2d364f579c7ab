import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
nn.init.zeros_(model[2].weight)
nn.init.zeros_(model[2].bias)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(8):
    inputs, labels = torch.randn(32, 4), torch.randint(3, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
