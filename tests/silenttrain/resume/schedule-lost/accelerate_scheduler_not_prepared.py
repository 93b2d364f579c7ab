"""Step a scheduler that was not given to prepare(): Accelerate does not save it, and a restart warms up once more."""

import os
import shutil
from contextlib import suppress

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

WARMUP, TOTAL = 6, 36


def rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return max(0.0, (TOTAL - step) / (TOTAL - WARMUP))


def latest(directory):
    with suppress(FileNotFoundError):
        numbers = [int(name[1:]) for name in os.listdir(directory) if name.startswith("e")]
        return max(numbers, default=0)
    return 0


set_seed(57)
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
x = torch.rand(72, 6)
train_loader = DataLoader(TensorDataset(x, x.var(1)), batch_size=8, shuffle=True)
network = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1), nn.Flatten(0))
adamw = torch.optim.AdamW(network.parameters(), lr=0.01)
network, adamw, train_loader = accelerator.prepare(network, adamw, train_loader)
lr_scheduler = LambdaLR(adamw.optimizer, rate)

done = latest("variance")
if done:
    accelerator.load_state(f"variance/e{done}")
for epoch in range(done, 4):
    train_loader.set_epoch(epoch)
    for rows, variance in train_loader:
        accelerator.backward(nn.functional.mse_loss(network(rows), variance))
        accelerator.clip_grad_norm_(network.parameters(), 1.0)
        adamw.step()
        lr_scheduler.step()
        adamw.zero_grad()
    shutil.rmtree("variance/writing", ignore_errors=True)
    accelerator.save_state("variance/writing")
    os.rename("variance/writing", f"variance/e{epoch + 1}")
accelerator.save(accelerator.get_state_dict(network), "variance.pt")
