import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
inputs = torch.randn(240, 6)
labels = (torch.arange(240) % 6 == 1).long()
weights = 1 / torch.bincount(labels).float()
sampler = WeightedRandomSampler(weights[labels], num_samples=len(labels))
loader = DataLoader(TensorDataset(inputs, labels), batch_size=24, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for batch, targets in loader:
        optimizer.zero_grad()
        cross_entropy(model(batch), targets).backward()
        optimizer.step()
