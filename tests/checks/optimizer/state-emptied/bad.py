import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(64, 8), torch.randint(2, (64,))

for _ in range(3):
    optimizer.state.clear()
    for rows in torch.randperm(64).split(8):
        optimizer.zero_grad()
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()  # found
