import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


def traffic(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(25.0)
    phase = torch.rand(n, 1, generator=g) * 6.28
    level = 0.5 + torch.rand(n, 1, generator=g)
    series = level * torch.sin(t * 0.5 + phase) + 0.1 * torch.randn(n, 25, generator=g)
    return series[:, :-1, None], series[:, -1:]


def update(model, opt, micro, world):
    opt.zero_grad()
    k = len(micro)
    shown = 0.0
    for i, (x, y) in enumerate(micro):
        if world > 1 and i < k - 1:
            with model.no_sync():
                loss = nn.functional.mse_loss(model(x), y)
                (loss / k).backward()
        else:
            loss = nn.functional.mse_loss(model(x), y)
            (loss / k).backward()
        shown += loss.item() / k
    opt.step()
    return shown


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(Forecaster())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = traffic(2048, 5)
    x, y = x[rank::world], y[rank::world]
    g = torch.Generator().manual_seed(rank)
    for step in range(1, 51):
        rows = torch.randint(len(x), (4, 16), generator=g)
        value = update(model, opt, [(x[r], y[r]) for r in rows], world)
        if step % 10 == 0:
            v = torch.tensor(value)
            dist.all_reduce(v)
            if rank == 0:
                print(f"{step=} mse={v.item() / world:.4f}", flush=True)
    dist.destroy_process_group()
