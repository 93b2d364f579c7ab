import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()), nn.Linear(32, 4)
model = nn.Sequential(encoder, head)
encoder.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)  # a probe

for _ in range(12):
    inputs = torch.randn(16, 10)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), inputs[:, :4].argmax(dim=1)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
