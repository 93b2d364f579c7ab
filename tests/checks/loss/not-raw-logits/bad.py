import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=-1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()

for _ in range(8):
    inputs, labels = torch.randn(16, 4), torch.randint(3, (16,))
    optimizer.zero_grad()
    loss = criterion(model(inputs), labels)  # found
    loss.backward()
    optimizer.step()
