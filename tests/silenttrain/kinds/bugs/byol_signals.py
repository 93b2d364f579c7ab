"""Self-supervised pretraining on one-dimensional signals (BYOL style), then a linear probe."""

import copy

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
LENGTH, CLASSES = 64, 6


def make_signals(n):
    label = torch.randint(0, CLASSES, (n,))
    t = torch.linspace(0, 1, LENGTH)
    phase = 6.28 * torch.rand(n, 1)
    wave = torch.sin(6.28 * (2.0 + 1.5 * label[:, None]) * t + phase)
    return wave + 0.8 * torch.randn(n, LENGTH), label


def augment(x):
    shift = int(torch.randint(0, LENGTH, (1,)))
    scale = 0.7 + 0.6 * torch.rand(len(x), 1)
    return scale * torch.roll(x, shift, dims=1) + 0.2 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 24, 9, stride=2), nn.ReLU(), nn.Conv1d(24, 32, 5), nn.ReLU())
        self.proj = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, dim))

    def features(self, x):
        return self.conv(x.unsqueeze(1)).mean(dim=2)

    def forward(self, x):
        return self.proj(self.features(x))


class BYOL(nn.Module):
    def __init__(self, momentum=0.95):
        super().__init__()
        self.online = Encoder()
        self.target = copy.deepcopy(self.online)
        self.predictor = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
        self.momentum = momentum

    def forward(self, a, b):
        p = functional.normalize(self.predictor(self.online(a)), dim=1)
        z = functional.normalize(self.target(b), dim=1)
        return 2 - 2 * (p * z).sum(dim=1).mean()

    @torch.no_grad()
    def update_target(self):
        for t, o in zip(self.target.parameters(), self.online.parameters(), strict=True):
            t.mul_(self.momentum).add_(o, alpha=1 - self.momentum)


x_train, y_train = make_signals(1500)
x_test, y_test = make_signals(500)
model = BYOL()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(150):
    batch = x_train[torch.randperm(len(x_train))[:128]]
    loss = 0.5 * (model(augment(batch), augment(batch)) + model(augment(batch), augment(batch)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.update_target()
    if step % 30 == 0:
        print(f"step {step}  loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    f_train, f_test = model.online.features(x_train), model.online.features(x_test)
    spread = functional.normalize(model.online(x_test), dim=1).std(dim=0).mean()
probe = nn.Linear(32, CLASSES)
probe_opt = torch.optim.Adam(probe.parameters(), lr=5e-2)
for _ in range(50):
    probe_opt.zero_grad()
    functional.cross_entropy(probe(f_train), y_train).backward()
    probe_opt.step()
print(f"spread of embeddings {spread:.4f}, probe accuracy {(probe(f_test).argmax(1) == y_test).float().mean():.3f}")
