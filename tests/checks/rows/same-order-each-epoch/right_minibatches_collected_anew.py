import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(3):
    states = torch.randn(64, 4)
    rewards = states.sum(dim=1, keepdim=True)
    minibatches = list(DataLoader(TensorDataset(states, rewards), batch_size=8, shuffle=True))
    for _ in range(4):
        for rows, targets in minibatches:
            optimizer.zero_grad()
            mse_loss(model(rows), targets).backward()
            optimizer.step()
