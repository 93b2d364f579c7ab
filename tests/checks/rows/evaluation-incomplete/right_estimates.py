import itertools

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(320, 4)
rows = TensorDataset(inputs, (inputs[:, 0] > 0).long())
train_set, eval_set, test_set = Subset(rows, range(160)), Subset(rows, range(160, 240)), Subset(rows, range(240, 320))
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.no_grad()
def estimated_loss(some_rows, batches=None, shuffle=False):
    """Over a few batches, or all of them."""
    model.eval()
    loader = DataLoader(some_rows, batch_size=8, shuffle=shuffle)
    losses = [cross_entropy(model(batch), labels).item() for batch, labels in itertools.islice(loader, batches)]
    model.train()
    return sum(losses) / len(losses)


for epoch in range(3):
    for batch, labels in DataLoader(train_set, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
    print(epoch, estimated_loss(Subset(train_set, range(64)), 4), estimated_loss(eval_set, 1, shuffle=True))
    print("of the first rows", estimated_loss(test_set, 2))
