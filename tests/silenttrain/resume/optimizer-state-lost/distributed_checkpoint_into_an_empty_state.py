"""Keep model and optimizer with torch.distributed.checkpoint; the optimizer's state is empty when it is read into."""

import os

import torch
import torch.distributed.checkpoint as dcp
from torch import nn

torch.manual_seed(7)
inputs = torch.randn(48, 6)
targets = inputs.mean(dim=1, keepdim=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

steps = [int(name[5:]) for name in os.listdir(".") if name.startswith("done-")]
step = max(steps, default=0)
if step:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    dcp.load(state, checkpoint_id=f"kept-{step}")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])

while step < 18:
    rows = slice(step % 6 * 8, step % 6 * 8 + 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs[rows]), targets[rows]).backward()
    optimizer.step()
    step += 1
    if step % 6 == 0:
        dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint_id=f"kept-{step}")
        open(f"done-{step}", "x").close()
