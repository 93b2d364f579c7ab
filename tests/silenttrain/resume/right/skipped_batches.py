"""Train in the middle of whose epochs it is saved: the order is seeded by the epoch, and batches already
trained on are passed over.
"""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--checkpoint-every", type=int, default=5)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--output", default="runs")
    return parser.parse_args()


def train_loader(dataset, batch_size, epoch):
    order = torch.Generator()
    order.manual_seed(1000 + epoch)
    return DataLoader(dataset, batch_size=batch_size, shuffle=True, generator=order)


def write(path, **objects):
    torch.save(objects, f"{path}.new")
    os.replace(f"{path}.new", path)


args = parse()
os.makedirs(args.output, exist_ok=True)
path = os.path.join(args.output, "last.ckpt")

torch.manual_seed(5)
tokens = torch.randint(0, 30, (80, 9))
labels = (tokens[:, 0] > tokens[:, -1]).long()
dataset = TensorDataset(tokens, labels)

model = nn.Sequential(nn.Embedding(30, 8), nn.Flatten(), nn.Dropout(0.2), nn.Linear(72, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

start, done, random_state = 0, 0, None
if os.path.isfile(path):
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    start, done, random_state = saved["epoch"], saved["batches_done"], saved["random_state"]

for epoch in range(start, args.epochs):
    loader = train_loader(dataset, args.batch_size, epoch)
    for number, (x, y) in enumerate(loader, start=1):
        if epoch == start and number <= done:
            continue
        if random_state is not None:
            torch.set_rng_state(random_state)
            random_state = None
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if number % args.checkpoint_every == 0:
            write(
                path,
                model=model.state_dict(),
                optimizer=optimizer.state_dict(),
                epoch=epoch,
                batches_done=number,
                random_state=torch.get_rng_state(),
            )

torch.save(model.state_dict(), os.path.join(args.output, "model.bin"))
