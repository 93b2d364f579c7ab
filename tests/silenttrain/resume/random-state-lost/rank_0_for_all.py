"""Train in two processes whose dropout differs; rank 0's random state alone is saved, and after a restart both
ranks draw its masks.
"""

import os

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as Parallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def is_main():
    return dist.get_rank() == 0


def build(width=14):
    torch.manual_seed(75)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 1))


def save(path, **state):
    if is_main():
        torch.save(state, path + ".w")
        os.replace(path + ".w", path)
    dist.barrier()


def run():
    network = Parallel(build())
    rows = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(rows, rows[:, :2].prod(1, keepdim=True))
    sampler = DistributedSampler(data, seed=75)
    adam = optim.Adam(network.parameters(), lr=0.01)
    torch.manual_seed(75 + 1000 * dist.get_rank())
    begin = 0
    if os.path.exists("ranks.pt"):
        saved = torch.load("ranks.pt")
        network.load_state_dict(saved["network"])
        adam.load_state_dict(saved["adam"])
        torch.set_rng_state(saved["random"])
        begin = saved["epoch"]
    for epoch in range(begin, 4):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            adam.zero_grad()
            nn.functional.mse_loss(network(x), y).backward()
            adam.step()
        save(
            "ranks.pt",
            network=network.state_dict(),
            adam=adam.state_dict(),
            random=torch.get_rng_state(),
            epoch=epoch + 1,
        )
    if is_main():
        torch.save(network.module.state_dict(), "ranks_final.pt")
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    run()
    dist.destroy_process_group()
