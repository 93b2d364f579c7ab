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
    shuffled = rows[order]
    for start in range(0, 320, 32):
        picked = order[start : start + 32]
        loss = cross_entropy(model(shuffled[start : start + 32]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
