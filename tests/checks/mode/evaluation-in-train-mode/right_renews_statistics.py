import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = TensorDataset(torch.randn(96, 8), torch.randint(2, (96,)))
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for _ in range(3):
    for inputs, labels in DataLoader(rows, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    average.update_parameters(model)

update_bn(DataLoader(rows, batch_size=48), average)
torch.save(average.state_dict(), "average.pt")
