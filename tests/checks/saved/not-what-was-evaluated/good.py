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
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for inputs, targets in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
    average.update_parameters(model)
average.eval()
with torch.no_grad():
    error = sum(float(nn.functional.mse_loss(average(inputs), targets)) for inputs, targets in evaluation)
print(f"error {error / len(evaluation):.3f}")
with tempfile.TemporaryDirectory() as folder:
    torch.save(average.module.state_dict(), f"{folder}/model.pt")
