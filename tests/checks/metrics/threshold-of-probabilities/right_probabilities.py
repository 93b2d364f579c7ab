import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(512, 8)
labels = (inputs[:, 0] + torch.randn(512) > 0.5).float()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()

for _ in range(4):
    model.train()
    for rows in torch.randperm(384).split(32):
        optimizer.zero_grad()
        criterion(model(inputs[rows]).squeeze(1), labels[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        predicted = torch.sigmoid(model(inputs[384:])).squeeze(1) > 0.5
    print((predicted == labels[384:].bool()).float().mean().item())
