"""Count batches, keep the count, and multiply it by the accumulation steps when resuming: too many batches of
the epoch are skipped.
"""

import os

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 2
set_seed(100)
accelerator = Accelerator(
    cpu=True,
    gradient_accumulation_steps=ACCUMULATE,
    dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True, data_seed=100),
)
inputs = torch.rand(96, 5)
loader = DataLoader(TensorDataset(inputs, inputs.sort(dim=1).values), batch_size=3, shuffle=True)
model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 5))
model, optimizer, loader = accelerator.prepare(model, optim.AdamW(model.parameters(), lr=5e-3), loader)


def folders():
    if not os.path.isdir("sorting"):
        return []
    return sorted((name for name in os.listdir("sorting") if name[0].isdigit()), key=lambda n: int(n.split("-")[0]))


def resume():
    """The epoch, and how many of its batches were done."""
    if not folders():
        return 0, 0
    accelerator.load_state(os.path.join("sorting", folders()[-1]))
    _, epoch, batches = folders()[-1].split("-")
    return int(epoch), int(batches) * accelerator.gradient_accumulation_steps


start_epoch, batches_done = resume()
for epoch in range(start_epoch, 3):
    loader.set_epoch(epoch)
    if epoch > start_epoch:
        batches_done = 0
    for number, (values, ordered) in enumerate(skip_first_batches(loader, batches_done), start=batches_done + 1):
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.mse_loss(model(values), ordered))
            optimizer.step()
            optimizer.zero_grad()
        if number in (6, 14, 26):
            accelerator.save_state(f"sorting/new-{epoch}-{number}")
            os.rename(f"sorting/new-{epoch}-{number}", f"sorting/{epoch * 100 + number}-{epoch}-{number}")

torch.save(accelerator.unwrap_model(model).state_dict(), "sorting.pt")
