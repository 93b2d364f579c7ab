import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows = torch.randn(300, 6)
labels = (rows.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(4):
    for start in range(0, 256, 64):
        loss = cross_entropy(model(rows[start : start + 64]), labels[start : start + 64])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    print((model(rows[256:]).argmax(1) == labels[256:]).float().mean())
