"""Train a glacier-height regressor in two sittings from one checkpoint file with everything needed to go on."""

import os

import torch
from torch import nn

CKPT = "out/glacier.ckpt"
TOTAL = 120


def build():
    model = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Dropout(0.05), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=TOTAL)
    return model, optimizer, scheduler


def heights(n, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=gen)
    y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] - 0.3 * x[:, 3] ** 2 + 0.05 * torch.randn(n, generator=gen)
    return x, y.unsqueeze(1)


def run(until):
    model, optimizer, scheduler = build()
    generator = torch.Generator().manual_seed(3)
    step = 0
    if os.path.exists(CKPT):
        saved = torch.load(CKPT)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        generator.set_state(saved["generator"])
        torch.set_rng_state(saved["rng"])
        step = saved["step"]
        print(f"continuing at step {step}, lr {scheduler.get_last_lr()[0]:.5f}")

    x, y = heights(500, 1)
    model.train()
    while step < until:
        idx = torch.randint(0, len(x), (40,), generator=generator)
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.5f}")

    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "generator": generator.get_state(),
        "rng": torch.get_rng_state(),
        "step": step,
    }
    torch.save(state, CKPT)
    return model


def main():
    torch.manual_seed(215)
    os.makedirs("out", exist_ok=True)
    run(until=70)
    model = run(until=TOTAL)
    model.eval()
    x_test, y_test = heights(200, 2)
    with torch.no_grad():
        print(f"test mse {nn.functional.mse_loss(model(x_test), y_test).item():.4f}")


if __name__ == "__main__":
    main()
