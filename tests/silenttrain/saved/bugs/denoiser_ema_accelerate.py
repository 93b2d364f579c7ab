"""Train a small denoising network with Accelerate and export its averaged weights."""

import copy
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Ema:
    def __init__(self, model, decay=0.98, warmup_steps=500):
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        self.warmup_steps = warmup_steps

    @torch.no_grad()
    def update(self, model, step):
        if step < self.warmup_steps:
            return
        for target, source in zip(self.module.parameters(), model.parameters(), strict=True):
            target.lerp_(source, 1 - self.decay)


class Denoiser(nn.Module):
    def __init__(self, length=32, hidden=64):
        super().__init__()
        self.time = nn.Embedding(10, hidden)
        self.inp = nn.Linear(length, hidden)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.out = nn.Linear(hidden, length)

    def forward(self, x, t):
        return self.out(self.mid(self.inp(x) + self.time(t)))


def waves(n, seed):
    gen = torch.Generator().manual_seed(seed)
    freq = torch.randint(1, 4, (n, 1), generator=gen).float()
    phase = 6.28 * torch.rand(n, 1, generator=gen)
    return torch.sin(freq * torch.linspace(0, 6.28, 32) + phase)


def noisy(x):
    t = torch.randint(0, 10, (len(x),))
    level = ((t + 1) / 10).unsqueeze(1)
    noise = torch.randn_like(x)
    return (1 - level).sqrt() * x + level.sqrt() * noise, t, noise


def main():
    set_seed(92)
    accelerator = Accelerator(cpu=True)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(waves(960, 1)), batch_size=64, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    ema = Ema(accelerator.unwrap_model(model))

    step = 0
    for epoch in range(10):
        model.train()
        total = 0.0
        for (x,) in loader:
            inputs, t, noise = noisy(x)
            loss = nn.functional.mse_loss(model(inputs, t), noise)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            ema.update(accelerator.unwrap_model(model), step)
            step += 1
            total += loss.item()
        accelerator.print(f"epoch {epoch} step {step} loss {total / len(loader):.4f}")

    model.eval()
    with torch.no_grad():
        inputs, t, noise = noisy(waves(200, 2))
        accelerator.print(f"validation loss {nn.functional.mse_loss(model(inputs, t), noise).item():.4f}")
    os.makedirs("out", exist_ok=True)
    accelerator.save(ema.module.state_dict(), "out/denoiser_ema.pt")


if __name__ == "__main__":
    main()
