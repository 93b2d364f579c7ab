"""Save every few batches with the epoch but not the place in it: a restart begins the epoch again with its
first batch.
"""

import os

import numpy as np
import torch
from torch import nn

os.makedirs("saved", exist_ok=True)
LAST = "saved/last.npz.pt"

rs = np.random.RandomState(0)
features = rs.rand(90, 5).astype(np.float32)
target = features @ rs.rand(5, 2).astype(np.float32)
torch.manual_seed(0)
model = nn.Linear(5, 2)
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)


def shuffled(epoch):
    return np.random.RandomState(1000 + epoch).permutation(len(features))


def batches(epoch, size=6):
    order = shuffled(epoch)
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        yield torch.from_numpy(features[rows]), torch.from_numpy(target[rows])


start_epoch = 0
if os.path.exists(LAST):
    last = torch.load(LAST)
    model.load_state_dict(last["model"])
    optimizer.load_state_dict(last["optimizer"])
    start_epoch = last["epoch"]

for epoch in range(start_epoch, 3):
    for i, (x, y) in enumerate(batches(epoch)):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if i % 4 == 3:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, LAST + ".tmp"
            )
            os.replace(LAST + ".tmp", LAST)

torch.save(model.state_dict(), "saved/model.pt")
