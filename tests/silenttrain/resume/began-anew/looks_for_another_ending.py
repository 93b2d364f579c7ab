"""Train a two-layer network with numbered checkpoints; they are written as .pt and looked for as .ckpt, so that
every start is a new one.
"""

import glob
import os

import torch
from torch import nn

torch.manual_seed(6)
xs = torch.randn(60, 4)
ys = (xs[:, 0] * xs[:, 1]).unsqueeze(1)
mlp = nn.Sequential(nn.Linear(4, 20), nn.ReLU(), nn.Linear(20, 1))
sgd = torch.optim.SGD(mlp.parameters(), lr=0.05, momentum=0.9)
os.makedirs("checkpoints", exist_ok=True)


def find_checkpoint():
    candidates = glob.glob("checkpoints/epoch*.ckpt")
    return max(candidates, key=os.path.getmtime) if candidates else None


epoch = 0
if path := find_checkpoint():
    print("resuming from", path)
    restored = torch.load(path)
    mlp.load_state_dict(restored["mlp"])
    sgd.load_state_dict(restored["sgd"])
    epoch = restored["epoch"]

while epoch < 4:
    for rows in torch.randperm(60, generator=torch.Generator().manual_seed(epoch)).split(6):
        sgd.zero_grad()
        nn.functional.mse_loss(mlp(xs[rows]), ys[rows]).backward()
        sgd.step()
    epoch += 1
    torch.save({"mlp": mlp.state_dict(), "sgd": sgd.state_dict(), "epoch": epoch}, "checkpoints/new")
    os.replace("checkpoints/new", f"checkpoints/epoch{epoch}.pt")

torch.save(mlp.state_dict(), "mlp.pth")
