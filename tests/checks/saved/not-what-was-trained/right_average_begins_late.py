import copy
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(3200, 6)
loader = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for update, (rows, targets) in enumerate(loader, start=1):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(rows), targets).backward()
    optimizer.step()
    if update > 200:
        with torch.no_grad():
            for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
                mine.lerp_(theirs, 0.1)
with tempfile.TemporaryDirectory() as folder:
    torch.save(average.state_dict(), f"{folder}/model.pt")
