"""Accelerate with checkpoints that it names itself, of which the latest is gone on from."""

import os

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import ProjectConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(2)
features = torch.randn(48, 6)
config = ProjectConfiguration(project_dir="out", automatic_checkpoint_naming=True, total_limit=2)
accelerator = Accelerator(cpu=True, project_config=config)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(features, (features[:, 0] > 0).long()), batch_size=8)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

done = 0
if os.path.isdir("out/checkpoints") and os.listdir("out/checkpoints"):
    accelerator.load_state()
    last = max(int(name.rpartition("_")[2]) for name in os.listdir("out/checkpoints"))
    done = 4 * (last + 1)
    accelerator.project_configuration.iteration = last + 1

for epoch in range(done // len(loader), 3):
    first = done % len(loader) if epoch == done // len(loader) else 0
    for inputs, labels in skip_first_batches(loader, first) if first else loader:
        optimizer.zero_grad()
        accelerator.backward(nn.functional.cross_entropy(model(inputs), labels))
        optimizer.step()
        first += 1
        if (epoch * len(loader) + first) % 4 == 0:
            accelerator.save_state()
