import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(128, 4)
targets = torch.sigmoid(inputs.sum(dim=1)).long()
loader = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for inputs, targets in loader:
    loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets.float())  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
