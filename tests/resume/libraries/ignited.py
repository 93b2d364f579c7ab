# needs pytorch-ignite
"""Ignite with a Checkpoint handler that writes to the disk, of which the newest file is gone on from."""

import os

import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
features = torch.randn(48, 6)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(features, (features[:, 0] > 0).long()), batch_size=8)


def step(engine, batch):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


trainer = Engine(step)
parts = {"model": model, "optimizer": optimizer, "trainer": trainer}
saving = Checkpoint(
    parts,
    DiskSaver("out", create_dir=True, require_empty=False),
    n_saved=2,
    global_step_transform=lambda engine, event: engine.state.epoch,
)
trainer.add_event_handler(Events.EPOCH_COMPLETED, saving)
if kept := sorted(name for name in os.listdir("out") if name.endswith(".pt")):
    Checkpoint.load_objects(parts, torch.load(f"out/{kept[-1]}", weights_only=True))
trainer.run(loader, max_epochs=4)
