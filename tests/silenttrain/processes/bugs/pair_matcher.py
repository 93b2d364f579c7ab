import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 12))
        self.right = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 12))
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, a, b):
        a, b = F.normalize(self.left(a), dim=-1), F.normalize(self.right(b), dim=-1)
        return self.scale.exp() * a @ b.T


def pairs(n=1500):
    g = torch.Generator().manual_seed(2)
    z = torch.randn(n, 6, generator=g)
    a = torch.tanh(z @ torch.randn(6, 16, generator=g)) + 0.1 * torch.randn(n, 16, generator=g)
    b = z @ torch.randn(6, 10, generator=g) + 0.1 * torch.randn(n, 10, generator=g)
    return a, b


def nce(logits):
    t = torch.arange(len(logits))
    return (F.cross_entropy(logits, t) + F.cross_entropy(logits.T, t)) / 2


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(10)
ddp = DDP(Matcher())
opt = torch.optim.AdamW(ddp.parameters(), lr=3e-3)
a, b = pairs()
rows_g = torch.Generator().manual_seed(50)
accum, size = 3, 24

for it in range(50):
    rows = torch.randperm(len(a), generator=rows_g)[: accum * size * world]
    micro = rows.view(world, accum, size)[rank]
    opt.zero_grad()
    logged = 0.0
    with ddp.no_sync():
        for r in micro[:-1]:
            loss = nce(ddp(a[r], b[r])) / accum
            loss.backward()
            logged += loss.item()
        r = micro[-1]
        loss = nce(ddp(a[r], b[r])) / accum
    loss.backward()
    logged += loss.item()
    opt.step()
    if it % 10 == 9:
        t = torch.tensor(logged)
        dist.all_reduce(t)
        if rank == 0:
            print("iteration", it + 1, "nce %.4f" % (t.item() / world), flush=True)
dist.destroy_process_group()
