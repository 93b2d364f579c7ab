"""Save the number of the next epoch and add one to it when resuming: an epoch is left out after each restart."""

import os

import torch
from torch import nn

torch.manual_seed(35)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
data = torch.randn(72, 8)


def minibatches(epoch, size=8):
    generator = torch.Generator()
    generator.manual_seed(epoch)
    return data[torch.randperm(len(data), generator=generator)].split(size)


def save_checkpoint(epoch, filename="checkpoint.pth.tar"):
    state = {"epoch": epoch + 1, "state_dict": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, filename + ".new")
    os.replace(filename + ".new", filename)


def load_checkpoint(filename="checkpoint.pth.tar"):
    if not os.path.isfile(filename):
        return 0
    checkpoint = torch.load(filename)
    net.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"] + 1


start_epoch = load_checkpoint()
for epoch in range(start_epoch, 4):
    for batch in minibatches(epoch):
        loss = nn.functional.mse_loss(net(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save_checkpoint(epoch)
torch.save(net.state_dict(), "net_final.pth")
