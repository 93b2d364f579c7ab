import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def seed_all(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def average_grads(model):
    handles = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
    for h in handles:
        h.wait()
    for p in model.parameters():
        p.grad /= dist.get_world_size()


def run():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    world = int(os.environ["WORLD_SIZE"])

    seed_all(1234 + rank)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    split = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train_idx, test_idx = split[:1536], split[1536:]
    mine = train_idx[rank::world]

    model = build()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)

    for epoch in range(4):
        total = torch.zeros(2)
        for rows in mine[torch.randperm(len(mine))].split(48):
            logits = model(images[rows])
            loss = F.cross_entropy(logits, labels[rows])
            model.zero_grad()
            loss.backward()
            average_grads(model)
            opt.step()
            total += torch.tensor([loss.item() * len(rows), len(rows)])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: train loss {total[0] / total[1]:.4f}", flush=True)

    if rank == 0:
        with torch.no_grad():
            hit = (model(images[test_idx]).argmax(1) == labels[test_idx]).float().mean()
        print(f"test acc {hit:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
