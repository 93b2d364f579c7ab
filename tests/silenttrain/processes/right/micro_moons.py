import contextlib

import torch
import torch.distributed as dist
from sklearn.datasets import make_moons
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUM = 4


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(33)

    x, y = make_moons(n_samples=2560, noise=0.25, random_state=0)
    data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)

    model = DDP(nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)))
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

    for epoch in range(3):
        sampler.set_epoch(epoch)
        seen = torch.zeros(2)
        for k, (xb, yb) in enumerate(loader):
            sync = (k + 1) % ACCUM == 0
            with contextlib.nullcontext() if sync else model.no_sync():
                loss = nn.functional.cross_entropy(model(xb), yb)
                (loss / ACCUM).backward()
            seen += torch.tensor([loss.item(), 1.0])
            if (k + 1) % ACCUM == 0:
                opt.step()
                opt.zero_grad()
        dist.all_reduce(seen)
        if rank == 0:
            print(f"epoch {epoch} loss {seen[0] / seen[1]:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
