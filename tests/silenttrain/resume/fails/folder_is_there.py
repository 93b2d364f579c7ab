"""Make the folder for the results at each start without exist_ok: a restart stops at the folder of the first one."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPERIMENT = "experiments/baseline"


def prepare(experiment):
    checkpoint = os.path.join(experiment, "state.pt")
    resumable = os.path.exists(checkpoint)
    os.makedirs(os.path.join(experiment, "logs"))
    return torch.load(checkpoint) if resumable else None


torch.manual_seed(3)
state = prepare(EXPERIMENT)
angle = torch.rand(64, 1) * 6
data = TensorDataset(angle, torch.cat([angle.sin(), angle.cos()], 1))
model = nn.Sequential(nn.Linear(1, 30), nn.Tanh(), nn.Linear(30, 2))
optimizer = torch.optim.Rprop(model.parameters())
if state:
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])

for epoch in range(state["epoch"] if state else 0, 3):
    for a, point in DataLoader(data, 8, shuffle=True, generator=torch.Generator().manual_seed(epoch)):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(a), point).backward()
        optimizer.step()
    with open(f"{EXPERIMENT}/logs/epoch.txt", "a") as log:
        print(epoch, file=log)
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1},
        f"{EXPERIMENT}/state.part",
    )
    os.replace(f"{EXPERIMENT}/state.part", f"{EXPERIMENT}/state.pt")

torch.save(model.state_dict(), f"{EXPERIMENT}/model.pt")
