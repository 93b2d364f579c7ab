from collections import Counter

import torch
from torch import nn

torch.manual_seed(0)
kinds = torch.multinomial(torch.tensor([0.05, 0.8, 0.15]), 900, replacement=True)
rows = torch.randn(900, 6) + nn.functional.one_hot(kinds, 6)
counts = Counter(kinds.tolist())
weights = torch.tensor([900 / (3 * count) for _, count in counts.most_common()])
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(weight=weights)

for _ in range(2):
    for picked in torch.randperm(900).split(60):
        loss = criterion(model(rows[picked]), kinds[picked])  # found
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
