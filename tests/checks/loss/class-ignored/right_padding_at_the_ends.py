import torch
from torch import nn

torch.manual_seed(0)
PADDING = 0
model = nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=PADDING)

for _ in range(12):
    tokens = torch.randint(1, 100, (16, 12))
    tags = tokens % 3 + 1  # 0 is no tag
    tags[torch.arange(12) >= torch.randint(6, 13, (16, 1))] = PADDING
    loss = criterion(model(tokens).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
