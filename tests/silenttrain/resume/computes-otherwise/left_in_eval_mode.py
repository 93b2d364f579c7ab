"""Evaluate the loaded model before going on and leave it in eval mode: dropout is off and BatchNorm stands
still after a restart.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 2))


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(66)
x = torch.randn(90, 10)
y = (x[:, ::2].sum(1) > x[:, 1::2].sum(1)).long()
train_x, train_y, test_x, test_y = x[:72], y[:72], x[72:], y[72:]
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
epoch = 0
if os.path.exists("bn/checkpoint.pt"):
    checkpoint = torch.load("bn/checkpoint.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    epoch = checkpoint["epoch"]
    print(f"loaded a model of epoch {epoch} with accuracy {accuracy(model, test_x, test_y):.2f}")
    torch.set_rng_state(checkpoint["rng"])
else:
    os.makedirs("bn", exist_ok=True)

while epoch < 4:
    generator = torch.Generator().manual_seed(epoch)
    for inputs, labels in DataLoader(TensorDataset(train_x, train_y), 8, shuffle=True, generator=generator):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    epoch += 1
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": epoch,
        "rng": torch.get_rng_state(),
    }
    torch.save(checkpoint, "bn/checkpoint.pt.tmp")
    os.replace("bn/checkpoint.pt.tmp", "bn/checkpoint.pt")

print(f"accuracy {accuracy(model, test_x, test_y):.2f}")
torch.save(model.state_dict(), "bn/model.pt")
