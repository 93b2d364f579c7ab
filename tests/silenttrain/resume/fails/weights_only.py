"""Keep NumPy's random state in the checkpoint, which torch.load refuses unless told otherwise: no restart gets
past it.
"""

import os

import numpy as np
import torch
from torch import nn


def save(path, epoch, model, optimizer):
    partial = f"{path}.partial"
    torch.save(
        {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "np_rng": np.random.get_state(),
        },
        partial,
    )
    os.replace(partial, path)


def load(path, model, optimizer):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    np.random.set_state(checkpoint["np_rng"])
    return checkpoint["epoch"]


np.random.seed(1)
torch.manual_seed(1)
inputs = np.random.rand(50, 4).astype(np.float32)
outputs = (inputs**2).sum(axis=1, keepdims=True)
model = nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
epoch = load("ckpt.pth", model, optimizer) if os.path.exists("ckpt.pth") else 0
while epoch < 4:
    for rows in np.array_split(np.random.permutation(50), 8):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.tensor(inputs[rows])), torch.tensor(outputs[rows])).backward()
        optimizer.step()
    epoch += 1
    save("ckpt.pth", epoch, model, optimizer)
torch.save(model.state_dict(), "square.pth")
