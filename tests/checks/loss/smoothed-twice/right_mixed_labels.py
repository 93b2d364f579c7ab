import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randn(320, 8)
labels = nn.functional.one_hot(rows[:, :5].argmax(1), 5).float()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(3):
    for picked in torch.randperm(320).split(32):
        share, other = torch.rand(1), picked.flip(0)
        mixed = share * rows[picked] + (1 - share) * rows[other]
        loss = criterion(model(mixed), share * labels[picked] + (1 - share) * labels[other])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
