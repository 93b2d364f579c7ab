"""Train a gesture classifier in two processes and save plain weights without the DistributedDataParallel prefix."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class GestureNet(nn.Module):
    def __init__(self, gestures=5):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(3, 24, 5, padding=2), nn.BatchNorm1d(24), nn.ReLU(), nn.MaxPool1d(2))
        self.head = nn.Linear(24 * 10, gestures)

    def forward(self, x):
        return self.head(self.conv(x).flatten(1))


def recordings(n, seed):
    gen = torch.Generator().manual_seed(seed)
    shapes = torch.randn(5, 3, 20, generator=torch.Generator().manual_seed(17))
    y = torch.randint(0, 5, (n,), generator=gen)
    return shapes[y] + 1.2 * torch.randn(n, 3, 20, generator=gen), y


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


def strip_prefix(state, prefix="module."):
    return {k.removeprefix(prefix): v.clone() for k, v in state.items()}


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(218 + rank)
    data = TensorDataset(*recordings(640, 1))
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, seed=5)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    x_test, y_test = recordings(200, 2)

    model = DistributedDataParallel(GestureNet())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}")

    if rank == 0:
        os.makedirs("out", exist_ok=True)
        torch.save(strip_prefix(model.state_dict()), "out/gestures.pt")
        fresh = GestureNet()
        fresh.load_state_dict(torch.load("out/gestures.pt"))
        print(f"trained {accuracy(model.module, x_test, y_test):.3f} reloaded {accuracy(fresh, x_test, y_test):.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
