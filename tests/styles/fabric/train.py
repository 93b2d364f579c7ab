"""A classifier of points in a loop of its own with Fabric, evaluated after each epoch."""

import torch
from lightning.fabric import Fabric, seed_everything
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

seed_everything(3)
EPOCHS = 2

fabric = Fabric(accelerator="cpu", devices=1)
points = torch.randn(240, 8)
labels = (points[:, 0] + points[:, 1] > 0).long() + (points[:, 2] > 0.5).long()
train_loader = DataLoader(TensorDataset(points[:192], labels[:192]), batch_size=16, shuffle=True)
validation_loader = DataLoader(TensorDataset(points[192:], labels[192:]), batch_size=16)

encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1))
model = nn.Sequential(encoder, nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
planned = EPOCHS * len(train_loader)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=planned)
model, optimizer = fabric.setup(model, optimizer)
train_loader, validation_loader = fabric.setup_dataloaders(train_loader, validation_loader)

for epoch in range(EPOCHS):
    model.train()
    for inputs, targets in train_loader:
        loss = cross_entropy(model(inputs), targets)
        fabric.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()

    model.eval()
    right, rows = 0, 0
    with torch.no_grad():
        for inputs, targets in validation_loader:
            right += (model(inputs).argmax(dim=1) == targets).sum().item()
            rows += len(targets)
    fabric.print(f"epoch {epoch}: accuracy {right / rows:.3f}")
