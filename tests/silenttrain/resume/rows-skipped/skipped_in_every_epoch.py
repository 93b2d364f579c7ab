"""Pass over the batches of before the restart in the resumed epoch and in each later one too: their first rows
are never seen again.
"""

import itertools
import pathlib

import torch
from torch import nn

SAVE_STEPS = 7


class Sampler:
    """Batches of an epoch from the sample on that is said to be consumed."""

    def __init__(self, total, batch, consumed):
        self.total, self.batch, self.consumed = total, batch, consumed

    def __call__(self, epoch):
        order = torch.randperm(self.total, generator=torch.Generator().manual_seed(epoch)).tolist()
        for start in range(self.consumed % self.total, self.total, self.batch):
            yield order[start : start + self.batch]


def cycle(sampler, first_epoch):
    for epoch in itertools.count(first_epoch):
        yield from sampler(epoch)


def main(total_samples=240):
    torch.manual_seed(52)
    x = torch.randn(80, 7)
    model = nn.Sequential(nn.Linear(7, 7), nn.LeakyReLU(), nn.Linear(7, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.04, momentum=0.7)
    file = pathlib.Path("consumed.pt")
    consumed = 0
    if file.exists():
        stored = torch.load(file)
        model.load_state_dict(stored["model"])
        optimizer.load_state_dict(stored["optimizer"])
        consumed = stored["consumed"]
    batches = cycle(Sampler(80, 8, consumed), consumed // 80)
    while consumed < total_samples:
        rows = next(batches)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]).squeeze(1), x[rows].sum(1)).backward()
        optimizer.step()
        consumed += len(rows)
        if consumed // 8 % SAVE_STEPS == 0:
            stored = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "consumed": consumed}
            torch.save(stored, "consumed.tmp")
            pathlib.Path("consumed.tmp").replace(file)
    torch.save(model.state_dict(), "consumed_final.pt")


main()
