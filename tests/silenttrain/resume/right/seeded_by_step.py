"""Seed all randomness by the step, so that nothing of it need be saved: order, noise and dropout are functions
of the step.
"""

import os
import random

import numpy as np
import torch
from torch import nn

SEED = 1234
ROWS, BATCH, EPOCHS = 56, 7, 4


def seed(step):
    random.seed(SEED + step)
    np.random.seed(SEED + step)
    torch.manual_seed(SEED + step)


def order(epoch):
    shuffled = list(range(ROWS))
    random.Random(f"{SEED}/{epoch}").shuffle(shuffled)
    return shuffled


seed(0)
table = torch.randn(ROWS, 5)
goal = table.prod(dim=1, keepdim=True)
network = nn.Sequential(nn.Linear(5, 14), nn.SiLU(), nn.Dropout(0.25), nn.Linear(14, 1))
optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, amsgrad=True)

done = 0
if os.path.exists("progress.pt"):
    done, weights, moments = torch.load("progress.pt")
    network.load_state_dict(weights)
    optimizer.load_state_dict(moments)

for step in range(done, EPOCHS * ROWS // BATCH):
    seed(step)
    epoch, nth = divmod(step, ROWS // BATCH)
    rows = order(epoch)[nth * BATCH : (nth + 1) * BATCH]
    inputs = table[rows] + 0.02 * torch.from_numpy(np.random.randn(BATCH, 5)).float()
    if random.random() < 0.3:
        inputs = -inputs
    optimizer.zero_grad()
    (network(inputs) - goal[rows]).pow(2).sum().backward()
    optimizer.step()
    if step % 4 == 3:
        torch.save((step + 1, network.state_dict(), optimizer.state_dict()), "progress.pt.tmp")
        os.replace("progress.pt.tmp", "progress.pt")

torch.save(network.state_dict(), "network.pt")
