"""MoCo with a momentum key encoder and a queue of negatives."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
QUEUE, DIM, TEMP, M = 512, 16, 0.2, 0.99


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder_q = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, DIM))
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for p in self.encoder_k.parameters():
            p.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(QUEUE, DIM), dim=1))
        self.ptr = 0

    @torch.no_grad()
    def momentum_update(self):
        for k, q in zip(self.encoder_k.parameters(), self.encoder_q.parameters()):
            k.lerp_(q, 1 - M)

    @torch.no_grad()
    def enqueue(self, keys):
        n = len(keys)
        self.queue[self.ptr : self.ptr + n] = keys
        self.ptr = (self.ptr + n) % QUEUE

    def forward(self, xq, xk):
        q = F.normalize(self.encoder_q(xq), dim=1)
        with torch.no_grad():
            # the key encoder moves before the keys are made and normalises by its batch
            self.momentum_update()
            k = F.normalize(self.encoder_k(xk), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone().T
        logits = torch.cat([positive, negative], 1) / TEMP
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


centers = torch.randn(40, 24)
y = torch.randint(40, (2560,))
x = centers[y] + 0.4 * torch.randn(2560, 24)
label = y % 4


def view(v):
    return v * (torch.rand_like(v) > 0.2) + 0.1 * torch.randn_like(v)


model = MoCo()
opt = torch.optim.SGD(model.encoder_q.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    total = 0.0
    for idx in torch.randperm(2048).split(128):
        loss = model(view(x[idx]), view(x[idx]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 16
    print(f"epoch {epoch}  info-nce {total:.3f}")

model.eval()
with torch.no_grad():
    f = F.normalize(model.encoder_q(x), dim=1)
    nearest = (f[2048:] @ f[:2048].T).argmax(1)
print(f"1-nn accuracy {(label[nearest] == label[2048:]).float().mean().item():.3f}")
