"""Accelerate's skip_first_batches in the second epoch, which should give the batches that are left of it."""

from pathlib import Path
from shutil import rmtree

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, EVERY = 2, 12

set_seed(0)
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
inputs = torch.randn(64, 4)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(dim=1) > 0).long()), batch_size=8, shuffle=True)
model = nn.Linear(4, 2)
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2), loader)

done = max((int(each.name) for each in Path("states").glob("[0-9]*")), default=0)
if done:
    accelerator.load_state(f"states/{done}")
first, skip = divmod(done, len(loader))

for epoch in range(first, EPOCHS):
    loader.set_epoch(epoch)
    for batch, labels in accelerator.skip_first_batches(loader, skip) if epoch == first and skip else loader:
        accelerator.backward(nn.functional.cross_entropy(model(batch), labels))
        optimizer.step()
        optimizer.zero_grad()
        done += 1
        if done % EVERY == 0:
            rmtree("states/new", ignore_errors=True)
            accelerator.save_state("states/new")
            Path("states/new").rename(f"states/{done}")
