import torch
from accelerate import Accelerator
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True)
inputs = torch.randn(128, 5)
loader = DataLoader(TensorDataset(inputs, inputs.mean(dim=1, keepdim=True)), batch_size=16, shuffle=True)
model = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

resumed = accelerator.skip_first_batches(loader, 3)
for epoch in range(3):
    for batch, targets in resumed if epoch == 0 else loader:
        optimizer.zero_grad()
        accelerator.backward(mse_loss(model(batch), targets))
        optimizer.step()
