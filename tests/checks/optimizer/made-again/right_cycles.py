import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(160, 6)
loader = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
snapshots = []
for _ in range(3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * len(loader))
    for _ in range(2):
        for batch, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
            schedule.step()
    snapshots.append(copy.deepcopy(model).eval())
with torch.no_grad():
    together = torch.stack([each(inputs).softmax(-1) for each in snapshots]).mean(0)
print("agreeing", (together.argmax(-1) == (inputs[:, 0] > 0)).float().mean().item())
