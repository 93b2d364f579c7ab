import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
BATCH = 64
labels = torch.arange(300) // 100
rows = torch.randn(300, 6) + nn.functional.one_hot(labels, 6)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(4):
    for start in range(0, len(rows), BATCH):
        logits = model(rows[start : start + BATCH])
        loss = cross_entropy(logits, labels[start : start + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
