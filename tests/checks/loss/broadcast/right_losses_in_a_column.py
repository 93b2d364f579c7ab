import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows, weights = torch.randn(320, 8), torch.rand(320, 1)
data = TensorDataset(rows, rows.sum(1, keepdim=True), weights)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(3):
    for x, y, weight in DataLoader(data, batch_size=32, shuffle=True):
        losses = mse_loss(model(x), y, reduction="none")
        loss = (weight * losses).mean() + 0.01 * (losses * weight.squeeze(1).mean()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
