import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
known = TensorDataset(torch.randn(96, 8), torch.randint(2, (96,)))
shifted = DataLoader(TensorDataset(torch.randn(64, 8) + 1, torch.randint(2, (64,))), batch_size=16)

for inputs, labels in DataLoader(known, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()

with torch.no_grad():
    for inputs, _ in shifted:
        model(inputs)
    model.eval()
    print(sum((model(inputs).argmax(dim=1) == labels).sum().item() for inputs, labels in shifted) / 64)
