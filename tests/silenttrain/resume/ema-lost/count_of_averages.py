"""Average weights with AveragedModel; only its module is saved, not how many were averaged, so the next update
overwrites the average.
"""

import os

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(71)
dataset = TensorDataset(torch.rand(55, 4), torch.rand(55, 1))
network = nn.Sequential(nn.Linear(4, 9), nn.Sigmoid(), nn.Linear(9, 1))
average = AveragedModel(network)
optimizer = torch.optim.SGD(network.parameters(), lr=0.3)
next_epoch = 0

if os.path.exists("swa/state.pt"):
    state = torch.load("swa/state.pt")
    network.load_state_dict(state["network"])
    average.module.load_state_dict(state["average"])
    optimizer.load_state_dict(state["optimizer"])
    next_epoch = state["next_epoch"]
os.makedirs("swa", exist_ok=True)

for epoch in range(next_epoch, 4):
    for inputs, outputs in DataLoader(
        dataset, batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(71 * epoch)
    ):
        optimizer.zero_grad()
        nn.functional.mse_loss(network(inputs), outputs).backward()
        optimizer.step()
    average.update_parameters(network)
    state = {
        "network": network.state_dict(),
        "average": average.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "next_epoch": epoch + 1,
    }
    torch.save(state, "swa/state.tmp")
    os.replace("swa/state.tmp", "swa/state.pt")

torch.save(average.module.state_dict(), "swa/average.pt")
