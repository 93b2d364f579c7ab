import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def rainfall(n):
    g = torch.Generator().manual_seed(42)
    humidity, wind, temp, pressure = torch.randn(4, n, generator=g)
    mm = torch.relu(2 * humidity - 0.7 * pressure + 0.4 * wind * temp + 0.2 * torch.randn(n, generator=g))
    return torch.stack([humidity, wind, temp, pressure], 1), mm[:, None]


def train():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    ds = TensorDataset(*rainfall(1600))
    sampler = DistributedSampler(ds, shuffle=True, seed=9)
    loader = DataLoader(ds, batch_size=40, sampler=sampler)

    model = DDP(nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    criterion = nn.MSELoss()

    for epoch in range(4):
        sampler.set_epoch(epoch)
        running = 0.0
        for features, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(features), target)
            (loss / world_size).backward()
            optimizer.step()
            running += loss.item()
        mean = torch.tensor(running / len(loader))
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        mean /= world_size
        if rank == 0:
            print(f"epoch={epoch} mse={mean.item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
