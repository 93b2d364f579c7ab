import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
inputs = torch.randn(256, 4) * 30 + 100
labels = (inputs[:, 0] > 100).long()
inputs = (inputs - inputs.mean(dim=0)) / inputs.std(dim=0)

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(4):
    for rows in torch.randperm(192).split(32):
        optimizer.zero_grad()
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        predicted = model.forward(inputs[192:]).argmax(dim=1)  # as good as a call: there are no hooks
    print((predicted == labels[192:]).float().mean().item())
