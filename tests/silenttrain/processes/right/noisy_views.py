import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import load_digits

GLOBAL_BATCH = 96


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(77)
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

    d = load_digits()
    x = torch.tensor(d.data, dtype=torch.float32) / 16
    y = torch.tensor(d.target)
    order = torch.Generator().manual_seed(0)
    torch.manual_seed(77 + rank)

    step = 0
    for epoch in range(4):
        for rows in torch.randperm(len(x), generator=order)[:1728].split(GLOBAL_BATCH):
            mine = rows[rank::world]
            view = x[mine] + 0.2 * torch.randn(len(mine), 64)
            view = view * (torch.rand_like(view) > 0.1)
            loss = nn.functional.cross_entropy(model(view), y[mine], reduction="sum") / GLOBAL_BATCH
            opt.zero_grad()
            loss.backward()
            for p in model.parameters():
                dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            if step % 12 == 0:
                total = loss.detach().clone()
                dist.all_reduce(total)
                if rank == 0:
                    print(f"step {step} loss {total.item():.4f}", flush=True)
    dist.destroy_process_group()


main()
