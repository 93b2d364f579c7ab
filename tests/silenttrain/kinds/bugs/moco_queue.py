"""Momentum contrast with a queue of keys on small synthetic signals."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
DIM, CLASSES, QUEUE, MOMENTUM, TEMP = 40, 5, 512, 0.95, 0.2

t = torch.linspace(0, 6.28, DIM)
freqs = torch.tensor([1.0, 1.7, 2.5, 3.4, 4.6])


def sample(n):
    y = torch.randint(CLASSES, (n,))
    phase = 6.28 * torch.rand(n, 1)
    return torch.sin(freqs[y][:, None] * t + phase) + 0.3 * torch.randn(n, DIM), y


def augment(x):
    scale = 0.7 + 0.6 * torch.rand(len(x), 1)
    shift = int(torch.randint(-4, 5, (1,)))
    return scale * x.roll(shift, dims=1) + 0.1 * torch.randn_like(x)


def encoder():
    return nn.Sequential(nn.Linear(DIM, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 24))


x_train, y_train = sample(2000)
x_test, y_test = sample(500)

query_enc = encoder()
key_enc = copy.deepcopy(query_enc)
for p in key_enc.parameters():
    p.requires_grad = False
queue = F.normalize(torch.randn(QUEUE, 24), dim=1)
ptr = 0
opt = torch.optim.Adam(query_enc.parameters(), lr=1e-3)


def momentum_update():
    with torch.no_grad():
        for pq, pk in zip(query_enc.parameters(), key_enc.parameters()):
            pk = MOMENTUM * pk + (1 - MOMENTUM) * pq


for epoch in range(20):
    order = torch.randperm(len(x_train))
    running = 0.0
    for i in range(0, len(order) - 63, 64):
        x = x_train[order[i : i + 64]]
        q = F.normalize(query_enc(augment(x)), dim=1)
        momentum_update()
        with torch.no_grad():
            k = F.normalize(key_enc(augment(x)), dim=1)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ queue.T
        logits = torch.cat([pos, neg], 1) / TEMP
        loss = F.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long))
        opt.zero_grad()
        loss.backward()
        opt.step()
        queue[ptr : ptr + 64] = k
        ptr = (ptr + 64) % QUEUE
        running += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch} contrastive loss {running / 31:.4f}")

# nearest-neighbour evaluation on the learned representation
with torch.no_grad():
    bank = F.normalize(query_enc(x_train), dim=1)
    z = F.normalize(query_enc(x_test), dim=1)
    votes = y_train[(z @ bank.T).topk(15, dim=1).indices]
    pred = votes.mode(dim=1).values
print(f"knn accuracy {(pred == y_test).float().mean().item():.3f}")
