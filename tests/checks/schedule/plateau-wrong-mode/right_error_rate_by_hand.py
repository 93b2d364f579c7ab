import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
inputs = torch.randn(512, 8)
labels = (inputs[:, 0] + 0.5 * torch.randn(512) > 0).long()
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)

for _ in range(8):
    for rows in torch.randperm(384).split(32):
        optimizer.zero_grad()
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(inputs[384:]).argmax(dim=1) == labels[384:]).float().mean().item()
    scheduler.step(1 - right)
