"""Train a regressor with momentum and a checkpoint after every epoch, which keeps the loader's and torch's
generators.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 4
CHECKPOINT = "checkpoint.pt"

torch.manual_seed(3)
inputs = torch.randn(96, 6)
targets = inputs @ torch.randn(6, 1) + 0.1 * torch.randn(96, 1)
shuffling = torch.Generator().manual_seed(11)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=8, shuffle=True, generator=shuffling)

model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.1), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

first_epoch = 0
if os.path.exists(CHECKPOINT):
    checkpoint = torch.load(CHECKPOINT)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    shuffling.set_state(checkpoint["shuffling"])
    torch.set_rng_state(checkpoint["random"])
    first_epoch = checkpoint["epoch"] + 1
    print(f"going on with epoch {first_epoch}")

for epoch in range(first_epoch, EPOCHS):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "shuffling": shuffling.get_state(),
        "random": torch.get_rng_state(),
        "epoch": epoch,
    }
    torch.save(checkpoint, CHECKPOINT + ".tmp")
    os.replace(CHECKPOINT + ".tmp", CHECKPOINT)

torch.save(model.state_dict(), "model.pt")
