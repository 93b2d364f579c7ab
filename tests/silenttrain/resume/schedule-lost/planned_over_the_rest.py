"""Train with a linear decay to nought; after a restart it is planned over the steps that are left, and starts
from its full height.
"""

import argparse
import os

import torch
from torch import nn
from transformers import get_linear_schedule_with_warmup


def linear_model(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 10), nn.ReLU(), nn.Linear(10, outputs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=44)
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=18)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    x = torch.randn(66, 5)
    y = torch.stack([x.min(1).values, x.max(1).values], dim=1)
    model = linear_model(5, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

    step = 0
    if os.path.exists("linear.bin"):
        saved = torch.load("linear.bin")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
    scheduler = get_linear_schedule_with_warmup(optimizer, 0, args.steps - step)

    while step < args.steps:
        epoch, i = divmod(step, 11)
        torch_rng = torch.Generator().manual_seed(args.seed * 100 + epoch)
        index = torch.randperm(66, generator=torch_rng)[i * 6 : (i + 1) * 6]
        loss = nn.functional.smooth_l1_loss(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        step += 1
        if step % args.save_every == 0:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "linear.bin.tmp"
            )
            os.replace("linear.bin.tmp", "linear.bin")
    torch.save(model.state_dict(), "linear_final.bin")


main()
