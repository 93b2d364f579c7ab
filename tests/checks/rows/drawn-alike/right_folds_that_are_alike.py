import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows = torch.randn(400, 6)
labels = (rows.sum(1) > 0).long()

for size in (8, 16, 32, 64):
    torch.manual_seed(1)  # each size is to see the same batches
    model = nn.Sequential(nn.Linear(6, size), nn.ReLU(), nn.Linear(size, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(2):
        torch.randperm(400)
        for picked in torch.randperm(400).split(50):
            loss = cross_entropy(model(rows[picked]), labels[picked])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
