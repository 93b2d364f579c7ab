"""Restore everything, the generator of the order among it, but count the epochs from 0 again: a restarted run
makes too many of them.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spiral(Dataset):
    def __init__(self):
        t = torch.linspace(0.2, 3, 66)
        self.points = torch.stack([t * torch.cos(3 * t), t * torch.sin(3 * t)], 1)
        self.labels = (torch.arange(66) % 2).float()
        self.points = self.points * (1 - 2 * self.labels.unsqueeze(1))

    def __len__(self):
        return 66

    def __getitem__(self, i):
        return self.points[i], self.labels[i]


torch.manual_seed(64)
rng = torch.Generator().manual_seed(64)
loader = DataLoader(Spiral(), batch_size=6, shuffle=True, generator=rng)
model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
optim = torch.optim.Adam(model.parameters(), lr=0.01)
loss_fn = nn.BCEWithLogitsLoss()

if os.path.exists("spiral.pt"):
    saved = torch.load("spiral.pt")
    model.load_state_dict(saved["model"])
    optim.load_state_dict(saved["optim"])
    rng.set_state(saved["rng"])

for epoch in range(4):
    running = 0.0
    for points, labels in loader:
        optim.zero_grad()
        loss = loss_fn(model(points).squeeze(1), labels)
        loss.backward()
        optim.step()
        running += loss.item()
    print(f"[{epoch + 1}] loss: {running / len(loader):.3f}")
    saved = {"model": model.state_dict(), "optim": optim.state_dict(), "rng": rng.get_state()}
    torch.save(saved, "spiral.pt.tmp")
    os.replace("spiral.pt.tmp", "spiral.pt")

torch.save(model.state_dict(), "spiral_model.pt")
