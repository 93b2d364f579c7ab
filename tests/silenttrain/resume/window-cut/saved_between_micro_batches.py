"""Accumulate over 4 micro-batches and save after every 10th: gradients gathered in the window under way are not
in the checkpoint.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUM_STEPS = 4
SAVE_EVERY = 10
torch.manual_seed(58)
features = torch.randn(96, 6)
dataset = TensorDataset(features, features.softmax(dim=1))
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
start_epoch, start_batch = 0, 0

if os.path.exists("micro.pt"):
    snapshot = torch.load("micro.pt")
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    start_epoch, start_batch = snapshot["epoch"], snapshot["batch"]

for epoch in range(start_epoch, 4):
    loader = DataLoader(dataset, batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(epoch))
    for batch, (x, y) in enumerate(loader):
        if epoch == start_epoch and batch < start_batch:
            continue
        loss = nn.functional.cross_entropy(model(x), y) / ACCUM_STEPS
        loss.backward()
        if (batch + 1) % ACCUM_STEPS == 0:
            optimizer.step()
            optimizer.zero_grad()
        if (batch + 1) % SAVE_EVERY == 0:
            snapshot = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "epoch": epoch,
                "batch": batch + 1,
            }
            torch.save(snapshot, "micro.tmp")
            os.replace("micro.tmp", "micro.pt")

torch.save(model.state_dict(), "accumulated.pt")
