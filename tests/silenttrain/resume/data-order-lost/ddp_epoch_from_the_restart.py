"""Train in two processes; after a restart DistributedSampler is told the epochs since then, not the epoch, and
replays earlier orders.
"""

import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SNAPSHOT = pathlib.Path("snapshot.pt")


class Trainer:
    def __init__(self, model, loader, optimizer, last_epoch):
        self.rank = int(os.environ["RANK"])
        self.model = nn.parallel.DistributedDataParallel(model)
        self.loader = loader
        self.optimizer = optimizer
        self.epochs_run = 0
        self.last_epoch = last_epoch

    def load_snapshot(self):
        if SNAPSHOT.exists():
            snapshot = torch.load(SNAPSHOT)
            self.model.module.load_state_dict(snapshot["MODEL_STATE"])
            self.optimizer.load_state_dict(snapshot["OPTIMIZER_STATE"])
            self.epochs_run = snapshot["EPOCHS_RUN"]

    def save_snapshot(self, epochs_run):
        snapshot = {
            "MODEL_STATE": self.model.module.state_dict(),
            "OPTIMIZER_STATE": self.optimizer.state_dict(),
            "EPOCHS_RUN": epochs_run,
        }
        torch.save(snapshot, SNAPSHOT.with_suffix(".tmp"))
        SNAPSHOT.with_suffix(".tmp").replace(SNAPSHOT)

    def train(self):
        self.load_snapshot()
        for passed, epoch in enumerate(range(self.epochs_run, self.last_epoch)):
            self.loader.sampler.set_epoch(passed)
            for source, targets in self.loader:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(source), targets).backward()
                self.optimizer.step()
            if self.rank == 0:
                self.save_snapshot(epoch + 1)
            dist.barrier()


def main():
    dist.init_process_group(backend="gloo")
    torch.manual_seed(5)
    source = torch.randn(80, 5)
    dataset = TensorDataset(source, source.argmin(dim=1))
    loader = DataLoader(dataset, batch_size=5, sampler=DistributedSampler(dataset))
    model = nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 5))
    trainer = Trainer(model, loader, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), last_epoch=4)
    trainer.train()
    if trainer.rank == 0:
        torch.save(model.state_dict(), "trained.pt")
    dist.barrier()
    dist.destroy_process_group()


main()
