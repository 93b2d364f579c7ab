import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUM = 4


def chunks(loader, k):
    held = []
    for b in loader:
        held.append(b)
        if len(held) == k:
            yield held
            held = []
    if held:
        yield held


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    g = torch.Generator().manual_seed(0)
    x = torch.randn(1200, 8, generator=g)
    y = (x[:, :4] * x[:, 4:]).sum(1, keepdim=True)
    ds = TensorDataset(x, y)
    sampler = DistributedSampler(ds, seed=1)
    loader = DataLoader(ds, batch_size=16, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 128), nn.SiLU(), nn.Linear(128, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    updates = 0
    for epoch in range(4):
        sampler.set_epoch(epoch)
        seen = torch.zeros(2)
        for group in chunks(loader, ACCUM):
            rows = sum(len(b[0]) for b in group)
            opt.zero_grad()
            with model.no_sync():
                for xb, yb in group[:-1]:
                    part = (model(xb) - yb).pow(2).sum()
                    (part / rows).backward()
                    seen[0] += part.item()
            xb, yb = group[-1]
            part = (model(xb) - yb).pow(2).sum()
            (part / rows).backward()
            seen += torch.tensor([part.item(), rows])
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            updates += 1
        dist.all_reduce(seen)
        if rank == 0:
            print(f"epoch {epoch} updates {updates} mse {seen[0] / seen[1]:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
