"""Train with DistributedDataParallel over gloo; rank 0 saves, with the random state of every rank, after each
epoch.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = 4


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x = torch.randn(96, 6)
    dataset = TensorDataset(x, (x[:, :3].sum(1) > x[:, 3:].sum(1)).long())
    sampler = DistributedSampler(dataset, shuffle=True, seed=10)
    loader = DataLoader(dataset, batch_size=6, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Dropout(0.2), nn.Linear(10, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    torch.manual_seed(100 + rank)

    start = 0
    if os.path.exists("ddp.pt"):
        checkpoint = torch.load("ddp.pt", map_location="cpu")
        model.module.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        torch.set_rng_state(checkpoint["random"][rank])
        start = checkpoint["epoch"] + 1

    for epoch in range(start, EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        random_states = [None] * world
        dist.all_gather_object(random_states, torch.get_rng_state())
        if rank == 0:
            checkpoint = {
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "random": random_states,
                "epoch": epoch,
            }
            torch.save(checkpoint, "ddp.pt.tmp")
            os.replace("ddp.pt.tmp", "ddp.pt")
        dist.barrier()

    if rank == 0:
        torch.save(model.module.state_dict(), "ddp_model.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
