"""Save in the middle of epochs and go on with the next epoch: what was left of the interrupted one is never
trained on.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def dataset():
    torch.manual_seed(1)
    a, b = torch.randn(75, 3), torch.randn(75, 3)
    return TensorDataset(torch.cat([a, b], 1), (a * b).sum(1))


def checkpoint(name, **content):
    torch.save(content, f"{name}.incomplete")
    os.replace(f"{name}.incomplete", name)


data = dataset()
net = nn.Sequential(nn.Linear(6, 22), nn.ReLU(), nn.Linear(22, 1), nn.Flatten(0))
optimizer = torch.optim.AdamW(net.parameters(), lr=8e-3)
last_epoch, iterations = -1, 0
if os.path.exists("dot.ckpt"):
    ckpt = torch.load("dot.ckpt")
    net.load_state_dict(ckpt["net"])
    optimizer.load_state_dict(ckpt["optimizer"])
    last_epoch, iterations = ckpt["epoch"], ckpt["iterations"]

for epoch in range(last_epoch + 1, 4):
    generator = torch.Generator().manual_seed(10 * epoch)
    for x, product in DataLoader(data, batch_size=5, shuffle=True, generator=generator):
        loss = nn.functional.mse_loss(net(x), product)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        iterations += 1
        if iterations % 8 == 0:
            checkpoint(
                "dot.ckpt",
                net=net.state_dict(),
                optimizer=optimizer.state_dict(),
                epoch=epoch,
                iterations=iterations,
            )

torch.save(net.state_dict(), "dot.pt")
