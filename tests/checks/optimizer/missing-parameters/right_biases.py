import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam([p for name, p in model.named_parameters() if name.endswith("bias")], lr=1e-2)

for _ in range(8):
    inputs, labels = torch.randn(16, 4), torch.randint(2, (16,))
    model.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
