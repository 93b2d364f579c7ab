"""Build a loader for the rest of the epoch when resuming; its sampler is a new one that is not told the epoch:
order of epoch 0.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class EpochSampler(Sampler):
    """A permutation of the rows by seed and epoch, from a row on."""

    def __init__(self, rows, seed, start=0):
        self.rows, self.seed, self.start, self.epoch = rows, seed, start, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        yield from torch.randperm(self.rows, generator=generator).tolist()[self.start :]

    def __len__(self):
        return self.rows - self.start


class Module:
    """Model, data and where the training is."""

    batch_size = 5

    def __init__(self):
        torch.manual_seed(65)
        self.dataset = TensorDataset(torch.randn(60, 4), torch.randn(60, 4))
        self.model = nn.Linear(4, 4)
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=0.01, momentum=0.5)
        self.epoch = self.step_in_epoch = 0

    def train_dataloader(self, skip_batches=0):
        sampler = EpochSampler(len(self.dataset), seed=9, start=skip_batches * self.batch_size)
        return DataLoader(self.dataset, batch_size=self.batch_size, sampler=sampler)

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "step_in_epoch": self.step_in_epoch,
        }


module = Module()
if os.path.exists("module.ckpt"):
    state = torch.load("module.ckpt")
    module.model.load_state_dict(state["model"])
    module.optimizer.load_state_dict(state["optimizer"])
    module.epoch, module.step_in_epoch = state["epoch"], state["step_in_epoch"]

loader = module.train_dataloader()
while module.epoch < 3:
    loader.sampler.set_epoch(module.epoch)
    batches = loader
    if module.step_in_epoch:
        batches = module.train_dataloader(skip_batches=module.step_in_epoch)
    for a, b in batches:
        module.optimizer.zero_grad()
        nn.functional.mse_loss(module.model(a), b).backward()
        module.optimizer.step()
        module.step_in_epoch += 1
        if module.step_in_epoch % 5 == 0:
            torch.save(module.state(), "module.tmp")
            os.replace("module.tmp", "module.ckpt")
    module.epoch += 1
    module.step_in_epoch = 0

torch.save(module.model.state_dict(), "module_final.pt")
