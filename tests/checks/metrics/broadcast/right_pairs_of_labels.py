import torch
from torch import nn

torch.manual_seed(0)
inputs, unseen = torch.randn(128, 4), torch.randn(64, 4)
labels, true = (inputs.sum(dim=1) > 0).float(), (unseen.sum(dim=1) > 0).float()
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for rows in torch.randperm(128).split(16):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(inputs[rows]), labels[rows].unsqueeze(1)).backward()
    optimizer.step()

with torch.no_grad():
    score = model(unseen).squeeze(1)
others = true[torch.randperm(64)]
print((others.unsqueeze(1) == true).float().mean())
print((others.unsqueeze(1) - score).abs().mean())
