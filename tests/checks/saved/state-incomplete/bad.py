import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(64, 6)
rows = TensorDataset(inputs, inputs @ torch.randn(6, 1))
loader = DataLoader(rows, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for inputs, targets in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    torch.save(dict(model.named_parameters()), f"{folder}/model.pt")  # found
