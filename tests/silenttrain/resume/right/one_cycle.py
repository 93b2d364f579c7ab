"""Train with OneCycleLR and accumulation, saving only where an update has just been made."""

import os
from dataclasses import dataclass

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    epochs: int = 3
    batch_size: int = 4
    accumulation: int = 2
    max_lr: float = 0.1
    save_updates: int = 5
    folder: str = "ckpts"
    seed: int = 77


class Waves(Dataset):
    def __init__(self, n=112):
        grid = torch.linspace(0, 6, 12)
        shift = torch.linspace(0, 3, n).unsqueeze(1)
        self.x = torch.sin(grid + shift)
        self.y = (shift.squeeze(1) > 1.5).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


class Training:
    def __init__(self, config):
        self.config = config
        torch.manual_seed(config.seed)
        self.model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.01, momentum=0.8)
        self.data = Waves()
        self.batches = len(self.data) // config.batch_size
        self.updates_per_epoch = self.batches // config.accumulation
        self.scheduler = optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=config.max_lr, total_steps=config.epochs * self.updates_per_epoch
        )
        self.updates = 0

    @property
    def file(self):
        return os.path.join(self.config.folder, "training.pt")

    def state_dict(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "updates": self.updates,
        }

    def save(self):
        os.makedirs(self.config.folder, exist_ok=True)
        torch.save(self.state_dict(), self.file + "~")
        os.replace(self.file + "~", self.file)

    def restore(self):
        if not os.path.exists(self.file):
            return
        state = torch.load(self.file, weights_only=False)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.updates = state["updates"]

    def run(self):
        self.restore()
        first, done = divmod(self.updates, self.updates_per_epoch)
        for epoch in range(first, self.config.epochs):
            generator = torch.Generator().manual_seed(self.config.seed + epoch)
            loader = DataLoader(self.data, self.config.batch_size, shuffle=True, generator=generator)
            skip = done * self.config.accumulation if epoch == first else 0
            for i, batch in enumerate(loader):
                if i < skip:
                    continue
                out = self.model(batch["x"]).squeeze(1)
                loss = nn.functional.binary_cross_entropy_with_logits(out, batch["y"])
                (loss / self.config.accumulation).backward()
                if (i + 1) % self.config.accumulation == 0:
                    self.update()
        torch.save(self.model.state_dict(), "trained.pt")

    def update(self):
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        self.updates += 1
        if self.updates % self.config.save_updates == 0:
            self.save()


Training(Config()).run()
