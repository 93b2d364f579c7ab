"""Load the optimizer's state, then make the optimizer again with groups for weight decay: what was loaded goes
with the first one.
"""

import os

import torch
from torch import nn


class Experiment:
    checkpoint = "experiment.ckpt"

    def __init__(self):
        torch.manual_seed(50)
        self.inputs = torch.randn(72, 6)
        self.wanted = self.inputs.cumsum(1)
        self.model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 6))
        self.step = 0
        self.configure_optimizer()
        self.restore()
        self.configure_optimizer()

    def configure_optimizer(self):
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim < 2]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=3e-3)

    def restore(self):
        if os.path.exists(self.checkpoint):
            state = torch.load(self.checkpoint)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step = state["step"]

    def save(self):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}
        torch.save(state, self.checkpoint + ".tmp")
        os.replace(self.checkpoint + ".tmp", self.checkpoint)

    def batch(self):
        epoch, index = divmod(self.step, 12)
        order = torch.randperm(72, generator=torch.Generator().manual_seed(500 + epoch))
        return order[index * 6 : index * 6 + 6]

    def run(self, steps):
        while self.step < steps:
            rows = self.batch()
            loss = nn.functional.mse_loss(self.model(self.inputs[rows]), self.wanted[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
            if self.step % 5 == 0:
                self.save()
        torch.save(self.model.state_dict(), "experiment.pt")


Experiment().run(36)
