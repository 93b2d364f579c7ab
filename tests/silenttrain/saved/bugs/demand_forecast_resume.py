"""Train a demand forecaster in two sittings, continuing from the checkpoint of the first."""

import os

import torch
from torch import nn

CKPT = "out/forecast.ckpt"
TOTAL_STEPS = 140


class Forecaster(nn.Module):
    def __init__(self, window=24, hidden=48):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.lstm(x.unsqueeze(-1))
        return self.out(states[:, -1]).squeeze(-1)


def series(n, seed):
    gen = torch.Generator().manual_seed(seed)
    phase = 6.28 * torch.rand(n, 1, generator=gen)
    speed = 0.3 + 0.5 * torch.rand(n, 1, generator=gen)
    t = torch.arange(25).float()
    y = torch.sin(speed * t + phase) + 0.1 * torch.randn(n, 25, generator=gen)
    return y[:, :24], y[:, 24]


def make_training_state():
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.99))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=TOTAL_STEPS)
    return model, optimizer, scheduler


def run(until):
    model, optimizer, scheduler = make_training_state()
    step = 0
    if os.path.exists(CKPT):
        checkpoint = torch.load(CKPT)
        model.load_state_dict(checkpoint["model"])
        step = checkpoint["step"]
        print(f"resuming from step {step}")

    x, y = series(400, seed=1)
    while step < until:
        idx = torch.randint(0, len(x), (32,))
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")

    torch.save({"model": model.state_dict(), "step": step}, CKPT)
    return model


if __name__ == "__main__":
    torch.manual_seed(3)
    os.makedirs("out", exist_ok=True)
    run(until=90)
    model = run(until=TOTAL_STEPS)
    x_test, y_test = series(200, seed=2)
    model.eval()
    with torch.no_grad():
        print(f"test mse {nn.functional.mse_loss(model(x_test), y_test).item():.4f}")
    torch.save(model.state_dict(), "out/forecaster.pt")
