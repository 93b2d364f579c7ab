"""Load the pickled model into the name of the first one; the optimizer holds the first one's parameters, and
the loaded is never updated.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(38)
features = torch.randn(60, 6)
dataset = TensorDataset(features, features.mean(dim=1, keepdim=True).exp())
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
first = 1

if os.path.exists("whole/net.pt"):
    net, first = torch.load("whole/net.pt", weights_only=False)

os.makedirs("whole", exist_ok=True)
for epoch in range(first, 5):
    shuffled = DataLoader(dataset, batch_size=6, shuffle=True, generator=torch.Generator().manual_seed(epoch))
    for x, y in shuffled:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        net.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save((net, epoch + 1), "whole/net.tmp")
    os.replace("whole/net.tmp", "whole/net.pt")

torch.save(net.state_dict(), "whole/trained.pt")
