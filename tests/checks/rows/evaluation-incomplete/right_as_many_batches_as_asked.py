import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(320, 4)
labels = (inputs[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(inputs[:200], labels[:200]), batch_size=8, shuffle=True)
eval_loader = DataLoader(TensorDataset(inputs[200:260], labels[200:260]), batch_size=8)
test_loader = DataLoader(TensorDataset(inputs[260:], labels[260:]), batch_size=8)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.no_grad()
def estimated(loader, batches):
    model.eval()
    total = 0.0
    for number, (batch, targets) in enumerate(loader):
        if number == batches:
            break
        total += cross_entropy(model(batch), targets).item()
    model.train()
    return total / batches


@torch.no_grad()
def of_the_first(loader):
    model.eval()
    batch, targets = next(iter(loader))
    found = cross_entropy(model(batch), targets).item()
    model.train()
    return found


for epoch in range(3):
    for batch, targets in train_loader:
        optimizer.zero_grad()
        cross_entropy(model(batch), targets).backward()
        optimizer.step()
    print(epoch, "estimated", estimated(eval_loader, 1), of_the_first(test_loader))
