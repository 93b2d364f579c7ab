"""A training loop of any size, as a user's script: ``harness check --full scripts/scale/loop.py --parameters 1e6``.

It says what its updates cost in the processor's time, and how much memory the process holds, and knows nothing of who
watches it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import psutil
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

FEATURES = 16
PLACES = 64
"""In the run, at which memory is looked at."""


def number(text: str) -> int:
    return int(float(text))


parser = argparse.ArgumentParser()
parser.add_argument("--parameters", type=number, default=100_000)
parser.add_argument("--modules", type=number, default=10)
parser.add_argument("--rows", type=number, default=1000)
parser.add_argument("--updates", type=number, default=200)
parser.add_argument("--batch", type=number, default=10)
parser.add_argument("--result", type=Path, required=True)
options = parser.parse_args()

rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
if ranks > 1:
    dist.init_process_group("gloo")
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs + 0.1 * self.linear(torch.relu(inputs))


def network() -> nn.Module:
    """About so many modules, of about so many parameters together."""
    blocks = max(1, (options.modules - 3) // 2)
    width = max(2, round((options.parameters / blocks) ** 0.5))
    return nn.Sequential(nn.Linear(FEATURES, width), *(Block(width) for _ in range(blocks)), nn.Linear(width, 2))


features = torch.randn(options.rows, FEATURES)
data = TensorDataset(features, (features.sum(1) > 0).long())
sampler: DistributedSampler[tuple[torch.Tensor, ...]] | None = DistributedSampler(data) if ranks > 1 else None
loader = DataLoader(data, batch_size=options.batch, shuffle=sampler is None, sampler=sampler, drop_last=True)
model = network()
trained = nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
process, seconds, held = psutil.Process(), list[float](), list[tuple[int, int]]()

model.train()
epoch = 0
before = time.process_time()
while len(seconds) < options.updates:
    if sampler is not None:
        sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(trained(inputs), labels).backward()
        optimizer.step()
        now = time.process_time()
        seconds.append(now - before)
        before = now
        if len(seconds) % max(1, options.updates // PLACES) == 0:
            held.append((len(seconds), process.memory_info().rss))
            before = time.process_time()
        if len(seconds) == options.updates:
            break
    epoch += 1

if ranks > 1:
    dist.destroy_process_group()
if rank == 0:
    count, modules = sum(p.numel() for p in model.parameters()), sum(1 for _ in model.modules())
    options.result.write_text(json.dumps({"parameters": count, "modules": modules, "seconds": seconds, "held": held}))
