import torch
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(128, 4)
loader = DataLoader(TensorDataset(inputs, inputs[:, :1]), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = LinearLR(optimizer, start_factor=1.0, end_factor=0.1, total_iters=30)

for _ in range(3):
    for features, targets in loader:
        optimizer.zero_grad()
        mse_loss(model(features), targets).backward()
        optimizer.step()
        scheduler.step()
