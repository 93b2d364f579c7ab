import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
log = []

for step in range(12):
    inputs, labels = torch.randn(16, 4), torch.randint(2, (16,))
    loss = criterion(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()  # found
    optimizer.step()
    log.append({"step": step, "loss": loss})
