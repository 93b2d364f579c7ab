import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, labels = torch.randn(64, 6), torch.randint(2, (64,))

for _ in range(2):
    importance = [torch.zeros_like(p) for p in model.parameters()]
    for rows in torch.randperm(64).split(8):
        model.zero_grad()
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        for total, parameter in zip(importance, model.parameters(), strict=True):
            total += parameter.grad**2
    for rows in torch.randperm(64).split(8):
        optimizer.zero_grad()
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
