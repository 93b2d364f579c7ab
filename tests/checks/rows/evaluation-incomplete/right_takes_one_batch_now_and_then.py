import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def endless(loader):
    while True:
        yield from loader


rows = [TensorDataset(torch.randn(count, 4), torch.arange(count) % 2) for count in (200, 22)]
training = endless(DataLoader(rows[0], batch_size=8, shuffle=True, drop_last=True))
validation = endless(DataLoader(rows[1], batch_size=8, drop_last=True))
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(24):
    model.train()
    inputs, labels = next(training)
    optimizer.zero_grad()
    functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    if step % 4 == 0:
        model.eval()
        with torch.no_grad():
            inputs, labels = next(validation)
            print(functional.cross_entropy(model(inputs), labels).item())
