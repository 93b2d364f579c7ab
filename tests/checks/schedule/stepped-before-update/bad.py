import torch
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import PolynomialLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
epochs = 5
inputs = torch.randn(96, 3)
data = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
loader = DataLoader(data, batch_size=12, shuffle=True)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = PolynomialLR(optimizer, total_iters=epochs * len(loader))

for _ in range(epochs):
    for features, targets in loader:
        optimizer.zero_grad()
        loss = mse_loss(model(features), targets)
        loss.backward()
        scheduler.step()  # found
        optimizer.step()
