import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


def make_loader(size, train):
    rows = TensorDataset(torch.randn(size, 4), torch.randint(2, (size,)))
    return DataLoader(rows, batch_size=16, shuffle=train, drop_last=True)


torch.manual_seed(0)
train_loader, eval_loader = make_loader(100, train=True), make_loader(40, train=False)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, labels in train_loader:
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    losses = [cross_entropy(model(inputs), labels, reduction="sum") for inputs, labels in eval_loader]  # found
print("validation loss:", sum(losses).item() / len(eval_loader.dataset))
