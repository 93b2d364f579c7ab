"""Accelerate's load_state, which should bring back the random state that save_state kept: dropout draws from it."""

from pathlib import Path
from shutil import rmtree

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3

set_seed(0)
accelerator = Accelerator(cpu=True)
inputs = torch.randn(64, 4)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(dim=1) > 0).long()), batch_size=8)
model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.1), nn.Linear(16, 2))
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2), loader)

done = max((int(each.name) for each in Path("states").glob("[0-9]*")), default=0)
if done:
    accelerator.load_state(f"states/{done}")

for epoch in range(done, EPOCHS):
    for batch, labels in loader:
        accelerator.backward(nn.functional.cross_entropy(model(batch), labels))
        optimizer.step()
        optimizer.zero_grad()
    rmtree("states/new", ignore_errors=True)
    accelerator.save_state("states/new")
    Path("states/new").rename(f"states/{epoch + 1}")
