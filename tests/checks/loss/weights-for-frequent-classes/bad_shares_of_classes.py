import torch
from torch import nn

torch.manual_seed(0)
shares = torch.tensor([0.75, 0.2, 0.05])
labels = torch.multinomial(shares, 800, replacement=True)
rows = torch.randn(800, 5) + nn.functional.one_hot(labels, 3).float() @ torch.randn(3, 5)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(weight=labels.bincount() / len(labels))

for _ in range(2):
    for picked in torch.randperm(800).split(50):
        optimizer.zero_grad()
        loss = criterion(model(rows[picked]), labels[picked])  # found
        loss.backward()
        optimizer.step()
