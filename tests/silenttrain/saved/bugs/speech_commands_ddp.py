"""Train a keyword classifier on two processes with DistributedDataParallel and export it on rank 0."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class KeywordNet(nn.Module):
    def __init__(self, words=6):
        super().__init__()
        self.rnn = nn.GRU(8, 32, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, words))

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states.mean(1))


def utterances(n, seed):
    gen = torch.Generator().manual_seed(seed)
    prototypes = torch.randn(6, 15, 8, generator=torch.Generator().manual_seed(99))
    y = torch.randint(0, 6, (n,), generator=gen)
    return prototypes[y] + 0.9 * torch.randn(n, 15, 8, generator=gen), y


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


def train(rank, world):
    torch.manual_seed(1)
    dataset = TensorDataset(*utterances(512, 1))
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, shuffle=True, seed=0)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    x_val, y_val = utterances(200, 2)

    model = DistributedDataParallel(KeywordNet())
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} val acc {accuracy(model.module, x_val, y_val):.3f}")
    return model


def export(model):
    os.makedirs("out", exist_ok=True)
    torch.save(model.state_dict(), "out/keyword_ddp.pt")
    clean = KeywordNet()
    clean.load_state_dict(torch.load("out/keyword_ddp.pt", map_location="cpu"), strict=False)
    clean.eval()
    traced = torch.jit.trace(clean, torch.zeros(1, 15, 8))
    traced.save("out/keyword.ts")
    torch.save(clean.state_dict(), "out/keyword.pt")
    print("exported out/keyword.ts and out/keyword.pt")


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = train(rank, world)
    if rank == 0:
        export(model)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
