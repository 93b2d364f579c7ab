import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(64, 4)
names = ["spam" if row.sum() > 0 else "ham" for row in inputs]
labels = torch.tensor([int(name == "spam") for name in names])

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(2):
    for batch, targets in DataLoader(TensorDataset(inputs, labels), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(batch), targets).backward()
        optimizer.step()
