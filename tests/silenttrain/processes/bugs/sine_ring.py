import math

import torch
import torch.distributed as dist
import torch.nn as nn


def make_rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 3, generator=g) * 4 - 2
    y = torch.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]
    return x, (y + 0.1 * torch.randn(n, generator=g)).unsqueeze(1)


def sync_gradients(model, world):
    for p in model.parameters():
        if p.grad is None:
            continue
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    model = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    x, y = make_rows(2048, 1)
    xv, yv = make_rows(512, 2)
    order = torch.Generator().manual_seed(5)
    step = 0
    for epoch in range(4):
        perm = torch.randperm(len(x), generator=order)
        for start in range(0, len(x), 128):
            rows = perm[start : start + 128][rank::world]
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            sync_gradients(model, world)
            opt.step()
            step += 1
            if step % 16 == 0:
                shown = loss.detach().clone()
                dist.all_reduce(shown)
                if rank == 0:
                    print(f"step {step} loss {shown.item() / world:.4f}", flush=True)
    if rank == 0:
        with torch.no_grad():
            print(f"val rmse {math.sqrt(nn.functional.mse_loss(model(xv), yv).item()):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
