import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(128, 4)
labels = torch.where(inputs.sum(dim=1) > 0, 2, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for rows in torch.randperm(128).split(16):
    logits = model(inputs[rows]).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, labels[rows].float())  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
