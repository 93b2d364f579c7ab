"""Go on with skip_first_batches and then the whole loader, whose epoch is set at the restart only: it gives the
same order once more.
"""

import argparse
import os
import shutil

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset


def get_setup(seed):
    set_seed(seed)
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
    images = torch.rand(84, 16)
    loader = DataLoader(TensorDataset(images, (images.sum(1) * 3).long() % 4), batch_size=7, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(16, 12), torch.nn.ReLU(), torch.nn.Linear(12, 4))
    return accelerator, *accelerator.prepare(model, Adam(model.parameters(), lr=4e-3), loader)


def save(accelerator, step):
    if os.path.isdir("at_step_new"):
        shutil.rmtree("at_step_new")
    accelerator.save_state("at_step_new")
    os.rename("at_step_new", f"at_step_{step}")


def resumed_steps():
    steps = [name.rpartition("_")[2] for name in os.listdir() if name.startswith("at_step_")]
    return max((int(step) for step in steps if step.isdigit()), default=0)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=29)
parser.add_argument("--epochs", type=int, default=4)
arguments = parser.parse_args()
accelerator, model, optimizer, loader = get_setup(arguments.seed)
step = resumed_steps()
starting_epoch, skipped = divmod(step, len(loader))
if step:
    accelerator.load_state(f"at_step_{step}")
    loader.set_epoch(starting_epoch)

for epoch in range(starting_epoch, arguments.epochs):
    mid_epoch = epoch == starting_epoch and skipped
    for images, digits in skip_first_batches(loader, skipped) if mid_epoch else loader:
        loss = torch.nn.functional.cross_entropy(model(images), digits)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 5 == 0:
            save(accelerator, step)

torch.save(accelerator.unwrap_model(model).state_dict(), "images.pt")
