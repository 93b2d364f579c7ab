import torch
from torch import nn
from torch.nn.functional import cross_entropy

rows = torch.randn(2000, 6)
labels = (rows.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(5):
    torch.manual_seed(0)
    for picked in torch.randperm(2000)[:160].split(32):  # found
        loss = cross_entropy(model(rows[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
