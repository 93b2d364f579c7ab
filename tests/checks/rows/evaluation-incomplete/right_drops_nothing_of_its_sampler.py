import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(70, 5), torch.randint(2, (70,)))
train = DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(range(32, 70)))
test = DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(range(32)), drop_last=True)
model = torch.nn.Linear(5, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(3):
    for inputs, labels in train:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    with torch.no_grad():
        print(sum((model(x).argmax(1) == y).sum().item() for x, y in test) / 32)
