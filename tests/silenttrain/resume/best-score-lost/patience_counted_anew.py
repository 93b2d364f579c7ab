"""Stop early when the validation score has not risen for three epochs; the count of them is not saved and
begins at nought again.
"""

import dataclasses
import os

import torch
from torch import nn


@dataclasses.dataclass
class EarlyStopping:
    patience: int = 3
    best: float = float("-inf")
    waited: int = 0

    def __call__(self, score):
        if score > self.best:
            self.best, self.waited = score, 0
            return False
        self.waited += 1
        return self.waited >= self.patience


def score(model, x, y):
    with torch.no_grad():
        return -nn.functional.cross_entropy(model(x), y).item()


def main():
    torch.manual_seed(90)
    x = torch.randn(64, 10)
    y = (x[:, 0] + 1.5 * torch.randn(64) > 0).long()
    model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    stopping = EarlyStopping()
    epoch, stopped = 0, False
    if os.path.exists("stopping.pt"):
        state = torch.load("stopping.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        epoch, stopped = state["epoch"], state["stopped"]
        stopping.best = state["best"]
    while epoch < 12 and not stopped:
        order = torch.randperm(40, generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(10):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        epoch += 1
        stopped = stopping(score(model, x[40:], y[40:]))
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epoch": epoch,
            "stopped": stopped,
            "best": stopping.best,
        }
        torch.save(state, "stopping.tmp")
        os.replace("stopping.tmp", "stopping.pt")
    torch.save(model.state_dict(), "stopped.pt")


if __name__ == "__main__":
    main()
