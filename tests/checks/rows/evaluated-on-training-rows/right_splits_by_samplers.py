import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Sampler, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(100, 5), torch.randint(2, (100,)))
order = torch.randperm(100).tolist()


class InOrder(Sampler):
    def __init__(self, rows) -> None:
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)


train = DataLoader(data, batch_size=16, sampler=SubsetRandomSampler(order[40:]))
validation = DataLoader(data, batch_size=16, sampler=SubsetRandomSampler(order[20:40]))
test = DataLoader(data, batch_size=16, sampler=InOrder(order[:20]))
model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(3):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    for loader in (validation, test):
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / 20)
