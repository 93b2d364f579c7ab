"""Momentum contrast with a queue of negatives on synthetic absorption spectra, then nearest-centroid."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
BINS, KINDS, DIM = 80, 8, 16
CENTRES = torch.rand(KINDS, 4) * BINS


def spectra(n):
    kind = torch.randint(0, KINDS, (n,))
    grid = torch.arange(BINS).float()
    peaks = torch.exp(-0.5 * ((grid[None, None] - CENTRES[kind][:, :, None]) / 2.0) ** 2)
    return (peaks * (0.5 + torch.rand(n, 4, 1))).sum(1) + 0.1 * torch.randn(n, BINS), kind


def view(x):
    gain = 0.8 + 0.4 * torch.rand(len(x), 1)
    mask = (torch.rand_like(x) > 0.15).float()
    return gain * x * mask + 0.1 * torch.randn_like(x)


class MoCo(nn.Module):
    def __init__(self, queue=512, m=0.95, temperature=0.2):
        super().__init__()
        self.query, self.key = self.make(), self.make()
        self.key.load_state_dict(self.query.state_dict())
        for p in self.key.parameters():
            p.requires_grad = False
        self.m, self.temperature = m, temperature
        self.register_buffer("queue", functional.normalize(torch.randn(queue, DIM), dim=1))
        self.head = 0

    @staticmethod
    def make():
        return nn.Sequential(nn.Linear(BINS, 96), nn.ReLU(), nn.Linear(96, DIM))

    @torch.no_grad()
    def keys(self, x):
        for k, q in zip(self.key.parameters(), self.query.parameters(), strict=True):
            k.data = k.data * self.m + q.data * (1 - self.m)
        return functional.normalize(self.key(x), dim=1)

    def forward(self, a, b):
        q, k = functional.normalize(self.query(a), dim=1), self.keys(b)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone().T
        logits = torch.cat([pos, neg], dim=1) / self.temperature
        self.queue[self.head : self.head + len(k)] = k
        self.head = (self.head + len(k)) % len(self.queue)
        return functional.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long))


x, y = spectra(2000)
x_test, y_test = spectra(500)
model = MoCo()
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.3, momentum=0.9)
for step in range(180):
    batch = x[torch.randint(0, len(x), (128,))]
    loss = model(view(batch), view(batch))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 45 == 0:
        print(f"step {step:3d}  loss {loss.item():.3f}")

with torch.no_grad():
    z, z_test = functional.normalize(model.key(x), dim=1), functional.normalize(model.key(x_test), dim=1)
    centroid = torch.stack([z[y == c].mean(0) for c in range(KINDS)])
    accuracy = ((z_test @ centroid.T).argmax(1) == y_test).float().mean()
print(f"nearest-centroid accuracy {accuracy:.3f}")
