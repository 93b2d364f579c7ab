"""Shuffle with shuffle=True alone, from torch's global generator, which is seeded at each start and not saved:
orders are replayed.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

X = torch.rand(80, 3)
Y = torch.sin(3 * X).sum(dim=1, keepdim=True)
dl = DataLoader(TensorDataset(X, Y), batch_size=10, shuffle=True)
net = nn.Sequential(nn.Linear(3, 25), nn.Tanh(), nn.Linear(25, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
epoch0 = 0

if os.path.exists("sine.pt"):
    c = torch.load("sine.pt")
    net.load_state_dict(c["net"])
    opt.load_state_dict(c["opt"])
    sched.load_state_dict(c["sched"])
    epoch0 = c["epoch"]

for epoch in range(epoch0, 4):
    for xb, yb in dl:
        loss = ((net(xb) - yb) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    torch.save(
        {"net": net.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "epoch": epoch + 1}, "sine.part"
    )
    os.replace("sine.part", "sine.pt")

torch.save(net.state_dict(), "sine_net.pt")
