"""Save after each epoch over the only checkpoint there is: a kill while it is written leaves nothing that can
be loaded.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(20)
x = torch.randn(70, 12)
train_loader = DataLoader(
    TensorDataset(x, (x.sum(1) > 0).long()),
    batch_size=7,
    shuffle=True,
    generator=(shuffle := torch.Generator().manual_seed(20)),
)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
start_epoch = 0

if os.path.exists("model_checkpoint.pth"):
    checkpoint = torch.load("model_checkpoint.pth")
    model.load_state_dict(checkpoint["model_state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    shuffle.set_state(checkpoint["shuffle"])
    start_epoch = checkpoint["epoch"] + 1

for epoch in range(start_epoch, 4):
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = nn.functional.cross_entropy(outputs, labels)
        loss.backward()
        optimizer.step()
    torch.save(
        {
            "epoch": epoch,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "shuffle": shuffle.get_state(),
        },
        "model_checkpoint.pth",
    )

torch.save(model.state_dict(), "model_final.pth")
