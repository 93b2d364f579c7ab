import math

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, UPDATES = 27, 216

torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.arange(64) % 2)
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: max(0.0, math.cos(math.pi * 7 / 16 * step / UPDATES))
)
for _ in range(EPOCHS):
    for inputs, labels in loader:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        scheduler.step()
