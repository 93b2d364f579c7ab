import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows = torch.randn(320, 6)
labels = (rows.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(3):
    order = torch.randperm(320)
    rows = rows[order]  # found
    for start in range(0, 320, 32):
        loss = cross_entropy(model(rows[start : start + 32]), labels[start : start + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
