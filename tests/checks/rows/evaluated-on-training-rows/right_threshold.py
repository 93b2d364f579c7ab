import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
usual = TensorDataset(torch.randn(128, 8))
model = nn.Sequential(nn.Linear(8, 3), nn.Tanh(), nn.Linear(3, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(3):
    for (inputs,) in DataLoader(usual, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        mse_loss(model(inputs), inputs).backward()
        optimizer.step()

with torch.no_grad():
    errors = [mse_loss(model(rows), rows, reduction="none").mean(dim=1) for (rows,) in DataLoader(usual, batch_size=32)]
print("unusual from here on:", torch.cat(errors).quantile(0.99).item())
