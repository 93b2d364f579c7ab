import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(80, 8), torch.randn(80))
train_set, test_set = random_split(dataset, [48, 32])
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.MSELoss()

for inputs, targets in DataLoader(train_set, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    criterion(model(inputs), targets).backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    test_loader = DataLoader(test_set, batch_size=16)
    errors = [criterion(model(inputs), targets).item() for inputs, targets in test_loader]
print("mean squared error", sum(errors) / len(errors))
