import torch
from torch import nn

torch.manual_seed(0)
OUTSIDE, PERSON, PLACE = 0, 1, 2
PADDING = 0
model = nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=PADDING)

for _ in range(12):
    tokens = torch.randint(1, 100, (16, 12))
    tags = torch.where(tokens < 10, PERSON, torch.where(tokens < 20, PLACE, OUTSIDE))
    lengths = torch.randint(6, 13, (16, 1))
    tags[torch.arange(12) >= lengths] = PADDING
    loss = criterion(model(tokens).flatten(0, 1), tags.flatten())  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
