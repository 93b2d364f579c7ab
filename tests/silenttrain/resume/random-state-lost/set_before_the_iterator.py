"""Resume in the middle of an epoch with torch's state set before the loader is iterated over, which draws from
it: dropout is one draw off.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler


class Parity(Dataset):
    def __init__(self, bits=8, size=77):
        generator = torch.Generator().manual_seed(1)
        self.words = torch.randint(0, 2, (size, bits), generator=generator).float()

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return self.words[index], self.words[index].sum() % 2


class Loop:
    def __init__(self):
        torch.manual_seed(44)
        self.dataset = Parity()
        self.model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.epoch, self.batch = 0, 0

    def save(self, path="loop.pt"):
        state = {"epoch": self.epoch, "batch": self.batch, "rng": torch.get_rng_state()}
        state |= {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)

    def load(self, path="loop.pt"):
        if os.path.exists(path):
            state = torch.load(path)
            self.epoch, self.batch = state["epoch"], state["batch"]
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["rng"])

    def run(self):
        self.load()
        while self.epoch < 3:
            sampler = RandomSampler(self.dataset, generator=torch.Generator().manual_seed(self.epoch))
            skip = self.batch
            for index, (words, parity) in enumerate(DataLoader(self.dataset, batch_size=7, sampler=sampler)):
                if index < skip:
                    continue
                loss = nn.functional.binary_cross_entropy_with_logits(self.model(words).squeeze(1), parity)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.batch = index + 1
                if self.batch % 4 == 0:
                    self.save()
            self.epoch, self.batch = self.epoch + 1, 0
        torch.save(self.model.state_dict(), "parity.pt")


Loop().run()
