import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))  # is it spam?
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()

for _ in range(8):
    inputs = torch.randn(16, 8)
    is_spam = (inputs[:, 0] > 0).float().unsqueeze(1)
    loss = criterion(model(inputs), is_spam)  # found
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
