import torch
from torch import nn

torch.manual_seed(0)
tags = (torch.rand(800, 3) < torch.tensor([0.1, 0.2, 0.25])).float()
rows = torch.randn(800, 5) + tags @ torch.randn(3, 5)
present = tags.mean(0)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - present) / present)

for _ in range(2):
    for picked in torch.randperm(800).split(50):
        optimizer.zero_grad()
        loss = criterion(model(rows[picked]), tags[picked])
        loss.backward()
        optimizer.step()
