import torch
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(128, 4)
loader = DataLoader(TensorDataset(inputs, inputs[:, :1]), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
scheduler = ExponentialLR(optimizer, gamma=1.5)

for features, targets in loader:
    loss = mse_loss(model(features), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(f"{scheduler.get_last_lr()[0]:.1e}: {loss:.3f}")
