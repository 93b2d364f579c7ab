import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def logbook(rank):
    n = 960 if rank == 0 else 720
    g = torch.Generator().manual_seed(300 + rank)
    x = torch.randn(n, 5, generator=g)
    y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0).float()
    return x, y


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
model = DDP(nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)))
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = logbook(rank)
order = torch.Generator().manual_seed(rank)

for epoch in range(3):
    stats = torch.zeros(3)
    with model.join(divide_by_initial_world_size=False):
        for rows in torch.randperm(len(x), generator=order).split(40):
            logit = model(x[rows]).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            stats += torch.tensor([loss.item() * len(rows), ((logit > 0).float() == y[rows]).sum().item(), len(rows)])
    dist.all_reduce(stats)
    if rank == 0:
        print(
            f"epoch {epoch} rows {int(stats[2])} loss {stats[0] / stats[2]:.4f} acc {stats[1] / stats[2]:.4f}",
            flush=True,
        )
dist.destroy_process_group()
