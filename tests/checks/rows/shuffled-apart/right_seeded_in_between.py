import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy

random.seed(0)
torch.manual_seed(0)
texts = torch.randn(320, 6).tolist()
labels = [int(sum(row) > 0) for row in texts]
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(3):
    random.seed(epoch)
    random.shuffle(texts)
    random.seed(epoch)
    random.shuffle(labels)
    for start in range(0, 320, 32):
        logits = model(torch.tensor(texts[start : start + 32]))
        loss = cross_entropy(logits, torch.tensor(labels[start : start + 32]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
