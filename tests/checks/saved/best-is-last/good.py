import copy
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(64, 6)
targets = inputs @ torch.randn(6, 1)
loader = DataLoader(TensorDataset(inputs[:48], targets[:48]), batch_size=8, shuffle=True)
evaluation = DataLoader(TensorDataset(inputs[48:], targets[48:]), batch_size=16)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
least = float("inf")
for epoch in range(3):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = sum(float(nn.functional.mse_loss(model(inputs), targets)) for inputs, targets in evaluation)
    if error < least and epoch < 2:
        least, best = error, copy.deepcopy(model.state_dict())
with tempfile.TemporaryDirectory() as folder:
    torch.save(best, f"{folder}/model.pt")
