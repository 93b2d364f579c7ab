import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

# Measurements come as one file per site; each worker reads its own files.
SITES = 8
ROWS = 200


def site_rows(site):
    g = torch.Generator().manual_seed(1000 + site)
    scale = torch.tensor([1.0, 10.0, 0.1, 3.0, 50.0, 1.0]) * (1 + 0.6 * site)
    shift = torch.tensor([0.0, 5.0, 1.0, -2.0, 100.0, 4.0]) * (1 + 0.3 * site)
    z = torch.randn(ROWS, 6, generator=g)
    label = (z[:, 0] + z[:, 1] * z[:, 2] - 0.5 * z[:, 4] > 0).long()
    return z * scale + shift, label


class Scaled(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.body = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x):
        return self.body((x - self.mean) / self.std)


def feature_moments(x):
    n = torch.tensor([float(len(x))], dtype=torch.float64)
    s1 = x.double().sum(0)
    s2 = x.double().pow(2).sum(0)
    mean = s1 / n
    std = (s2 / n - mean.pow(2)).clamp_min(1e-8).sqrt()
    return mean.float(), std.float()


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
per = SITES // world
parts = [site_rows(s) for s in range(rank * per, (rank + 1) * per)]
x = torch.cat([p[0] for p in parts])
y = torch.cat([p[1] for p in parts])

torch.manual_seed(0)
model = DDP(Scaled(*feature_moments(x)))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
g = torch.Generator().manual_seed(77 + rank)
for epoch in range(6):
    stats = torch.zeros(3)
    for rows in torch.randperm(len(x), generator=g).split(80):
        out = model(x[rows])
        loss = nn.functional.cross_entropy(out, y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        stats += torch.tensor([loss.item() * len(rows), (out.argmax(1) == y[rows]).sum().item(), len(rows)])
    dist.all_reduce(stats)
    if rank == 0:
        print(f"epoch {epoch} loss {stats[0] / stats[2]:.4f} acc {stats[1] / stats[2]:.4f}", flush=True)
if rank == 0:
    print("feature mean", [round(v, 2) for v in model.module.mean.tolist()])
dist.destroy_process_group()
