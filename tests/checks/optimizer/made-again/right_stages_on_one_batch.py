import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(96, 7)
inputs, labels = next(iter(DataLoader(TensorDataset(rows, (rows[:, 1] > 0).long()), batch_size=96)))  # all of them
model = nn.Sequential(nn.Linear(7, 14), nn.Tanh(), nn.Linear(14, 2))


def with_noise(amount):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(30):
        drawn = torch.randint(96, (24,))
        noisy = inputs[drawn] + amount * torch.randn(24, 7)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(noisy), labels[drawn]).backward()
        optimizer.step()


for amount in (0.0, 0.2, 0.5):
    with_noise(amount)
