"""Shuffle with a generator of one's own, seeded at the start and not saved: the first epoch after a restart has
the first one's order.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(72, 6, generator=generator)
    return TensorDataset(x, (x[:, 0] > x[:, 1]).long())


def make_model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def train(epochs=4, batch_size=8, lr=0.05, path="last.pth"):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    loader = DataLoader(make_data(), batch_size=batch_size, shuffle=True, generator=torch.Generator().manual_seed(123))
    start = 0
    if os.path.exists(path):
        checkpoint = torch.load(path)
        start = checkpoint["epoch"] + 1
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        print(f"Resuming from epoch {start}")
    for epoch in range(start, epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".tmp")
        os.replace(path + ".tmp", path)
    return model


if __name__ == "__main__":
    torch.save(train().state_dict(), "final.pth")
