"""Keep the model with the best validation loss; a restart holds infinity for the best so far, and a worse model
overwrites the best.
"""

import os

import torch
from torch import nn

torch.manual_seed(4)
features, noise = torch.randn(60, 8), torch.randn(60, 1)
answers = features @ torch.randn(8, 1) + 2 * noise
train, valid = slice(0, 32), slice(32, 60)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.08)
best_loss = float("inf")
start_epoch = 0


def save_to(path, obj):
    torch.save(obj, path + ".tmp")
    os.replace(path + ".tmp", path)


if os.path.exists("latest.pth"):
    latest = torch.load("latest.pth")
    model.load_state_dict(latest["model"])
    optimizer.load_state_dict(latest["optimizer"])
    start_epoch = latest["epoch"] + 1

for epoch in range(start_epoch, 8):
    order = torch.randperm(32, generator=torch.Generator().manual_seed(epoch))
    for rows in order.split(8):
        loss = nn.functional.mse_loss(model(features[train][rows]), answers[train][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        valid_loss = nn.functional.mse_loss(model(features[valid]), answers[valid]).item()
    print(f"{epoch} {valid_loss:.3f}")
    if valid_loss < best_loss:
        best_loss = valid_loss
        save_to("best.pth", model.state_dict())
    save_to("latest.pth", {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch})

torch.save(torch.load("best.pth"), "deployed.pth")
