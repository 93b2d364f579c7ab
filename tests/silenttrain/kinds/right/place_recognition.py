"""Recognises places from descriptors with a triplet embedding; the gallery is searched by distance."""

import argparse

import numpy as np
import torch
from torch import nn

PLACES, DIM = 80, 32


def make_views(per_place, seed):
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(12)
    scene = world.normal(size=(PLACES, DIM))
    light = world.normal(size=(6, DIM))
    place = np.repeat(np.arange(PLACES), per_place)
    x = scene[place] + 3.0 * rng.normal(size=(len(place), 6)) @ light + 0.5 * rng.normal(size=(len(place), DIM))
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(place)


def triplets(place, n, gen):
    anchor = torch.randint(len(place), (n,), generator=gen)
    per = len(place) // PLACES
    positive = place[anchor] * per + torch.randint(per, (n,), generator=gen)
    other = (place[anchor] + torch.randint(1, PLACES, (n,), generator=gen)) % PLACES
    negative = other * per + torch.randint(per, (n,), generator=gen)
    return anchor, positive, negative


@torch.no_grad()
def retrieval(net, query, q_place, gallery, g_place, ks=(1, 5)):
    net.eval()
    dist = torch.cdist(net(query), net(gallery))
    order = dist.argsort(dim=1)
    match = g_place[order] == q_place[:, None]
    first = match.int().argmax(dim=1) + 1
    recall = {k: match[:, :k].any(dim=1).float().mean().item() for k in ks}
    return recall, (1.0 / first).mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=400)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--margin", type=float, default=0.5)
    args = p.parse_args([])
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(5)

    x, place = make_views(12, 1)
    query, q_place = make_views(3, 2)
    gallery, g_place = make_views(2, 3)
    net = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 24))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    loss_fn = nn.TripletMarginLoss(margin=args.margin)

    before, _ = retrieval(net, query, q_place, gallery, g_place)
    for step in range(1, args.steps + 1):
        net.train()
        a, pos, neg = triplets(place, args.batch_size, gen)
        loss = loss_fn(net(x[a]), net(x[pos]), net(x[neg]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step}: triplet loss {loss.item():.4f}")
    recall, mrr = retrieval(net, query, q_place, gallery, g_place)
    print(f"recall@1 before training {before[1]:.4f}")
    print("  ".join(f"recall@{k} {v:.4f}" for k, v in recall.items()) + f"  MRR {mrr:.4f}")


if __name__ == "__main__":
    main()
