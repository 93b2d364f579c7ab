import argparse

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--lr", type=float, default=5e-3)
args, _ = parser.parse_known_args()


class TwoTower(nn.Module):
    def __init__(self, users, items, dim=16):
        super().__init__()
        self.user = nn.Sequential(nn.Embedding(users, dim), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.item = nn.Sequential(nn.Embedding(items, dim), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.head = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, u, i):
        a, b = self.user(u), self.item(i)
        return self.head(torch.cat([a, b, a * b], dim=-1)).squeeze(-1)


def allreduce_mean(params, world):
    params = [p for p in params if p.grad is not None]
    flat = torch.cat([p.grad.reshape(-1) for p in params])
    dist.all_reduce(flat)
    flat /= world
    offset = 0
    for p in params:
        n = p.numel()
        p.grad.copy_(flat[offset : offset + n].view_as(p))
        offset += n


dist.init_process_group(backend="gloo")
rank, world = dist.get_rank(), dist.get_world_size()

gen = torch.Generator().manual_seed(3)
U, I, N = 50, 40, 6000
fu, fi = torch.randn(U, 4, generator=gen), torch.randn(I, 4, generator=gen)
users = torch.randint(U, (N,), generator=gen)
items = torch.randint(I, (N,), generator=gen)
liked = ((fu[users] * fi[items]).sum(-1) + 0.3 * torch.randn(N, generator=gen) > 0).float()
train = torch.arange(5000)[rank::world]
test = torch.arange(5000, N)

torch.manual_seed(1)
model = TwoTower(U, I)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
bce = nn.BCEWithLogitsLoss()
local = torch.Generator().manual_seed(100 + rank)

for step in range(1, args.steps + 1):
    rows = train[torch.randint(len(train), (args.batch,), generator=local)]
    loss = bce(model(users[rows], items[rows]), liked[rows])
    optimizer.zero_grad()
    loss.backward()
    allreduce_mean([*model.user.parameters(), *model.item.parameters(), *model.head.parameters()], world)
    optimizer.step()
    if step % 20 == 0:
        avg = loss.detach() / world
        dist.all_reduce(avg)
        if rank == 0:
            print(f"[{step:03d}] bce={avg.item():.4f}", flush=True)

if rank == 0:
    with torch.no_grad():
        acc = ((model(users[test], items[test]) > 0).float() == liked[test]).float().mean()
    print(f"test accuracy {acc.item():.3f}")
dist.destroy_process_group()
