import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(80, 8)
rows = TensorDataset(inputs, (inputs.sum(1) > 0).long())
loader = DataLoader(rows, batch_size=16)

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for _ in range(3):
    for inputs, labels in loader:  # found
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
