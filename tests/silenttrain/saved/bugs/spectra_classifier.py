"""Classify noisy spectra with a 1-d network, keeping an exponential moving average of the weights."""

import os

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(21)
CLASSES = 5


def spectra(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    grid = torch.linspace(0, 1, 48)
    centre = 0.15 + 0.17 * y.float()
    signal = torch.exp(-((grid[None] - centre[:, None]) ** 2) / 0.004)
    return (signal + 0.55 * torch.randn(n, 48, generator=gen)).unsqueeze(1), y


class SpectraNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2), nn.GELU(), nn.MaxPool1d(2), nn.Conv1d(16, 32, 5, padding=2), nn.GELU()
        )
        self.norm = nn.LayerNorm(32 * 24)
        self.out = nn.Linear(32 * 24, CLASSES)

    def forward(self, x):
        return self.out(self.norm(self.conv(x).flatten(1)))


@torch.no_grad()
def score(model, x, y):
    model.eval()
    logits = model(x)
    return (logits.argmax(-1) == y).float().mean().item(), nn.functional.cross_entropy(logits, y).item()


x_train, y_train = spectra(320, 1)
x_val, y_val = spectra(300, 2)

model = SpectraNet()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.97))
optimizer = torch.optim.SGD(model.parameters(), lr=0.12, momentum=0.9)

os.makedirs("out", exist_ok=True)
best = 0.0
for epoch in range(12):
    model.train()
    for idx in torch.randperm(len(x_train)).split(32):
        loss = nn.functional.cross_entropy(model(x_train[idx]), y_train[idx], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        ema.update_parameters(model)
    acc, val_loss = score(ema, x_val, y_val)
    print(f"epoch {epoch} loss {loss.item():.3f} val acc {acc:.3f} val loss {val_loss:.3f}")
    if acc > best:
        best = acc
        torch.save({"epoch": epoch, "acc": acc, "state_dict": model.state_dict()}, "out/spectra_best.pt")

print(f"best val acc {best:.3f}, checkpoint at out/spectra_best.pt")
