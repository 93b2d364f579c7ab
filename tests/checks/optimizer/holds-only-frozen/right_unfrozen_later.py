import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh())
head = torch.nn.Linear(16, 3)
optimizers = [torch.optim.Adam(body.parameters(), lr=1e-3), torch.optim.Adam(head.parameters(), lr=1e-2)]
inputs = torch.randn(64, 8)
labels = inputs[:, :3].argmax(dim=1)

for epoch in range(4):
    body.requires_grad_(epoch >= 2)
    for rows in torch.randperm(len(inputs)).split(16):
        for optimizer in optimizers:
            optimizer.zero_grad()
        cross_entropy(head(body(inputs[rows])), labels[rows]).backward()
        for optimizer in optimizers:
            optimizer.step()
