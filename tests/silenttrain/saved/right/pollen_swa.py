"""Average the weights of a pollen classifier over its last epochs and refresh the batch statistics before saving."""

import os

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(230)


def pollen(n, seed):
    gen = torch.Generator().manual_seed(seed)
    templates = torch.randn(6, 1, 12, 12, generator=torch.Generator().manual_seed(31))
    y = torch.randint(0, 6, (n,), generator=gen)
    return TensorDataset(20 * (templates[y] + 1.6 * torch.randn(n, 1, 12, 12, generator=gen)) + 60, y)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 36, 6),
    )


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    x, y = data.tensors
    return (model(x).argmax(-1) == y).float().mean().item()


train, test = pollen(480, 1), pollen(240, 2)
loader = DataLoader(train, batch_size=32, shuffle=True)
model = build()
swa = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
swa_scheduler = SWALR(optimizer, swa_lr=0.006, anneal_epochs=1)

for epoch in range(9):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    if epoch >= 4:
        swa.update_parameters(model)
        swa_scheduler.step()
    print(f"epoch {epoch} loss {total / len(train):.3f} acc {accuracy(model, test):.3f}")

update_bn(loader, swa)
print(f"averaged model acc {accuracy(swa, test):.3f}")
os.makedirs("out", exist_ok=True)
torch.save(swa.module.state_dict(), "out/pollen.pt")
shipped = build()
shipped.load_state_dict(torch.load("out/pollen.pt"))
print(f"shipped model acc {accuracy(shipped, test):.3f}")
