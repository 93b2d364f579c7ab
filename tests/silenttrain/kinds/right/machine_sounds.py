"""Detects three machine states from sound features; learning rate follows the validation F1."""

import argparse

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch import nn

STATES = 3


def make_sounds(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(STATES, size=n, p=[0.6, 0.25, 0.15])
    centre = np.random.default_rng(1).normal(0, 0.8, size=(STATES, 2, 16))
    which = rng.integers(2, size=n)
    x = centre[y, which] + rng.normal(size=(n, 16))
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


def run_epoch(model, opt, x, y, batch_size):
    model.train()
    losses = []
    for idx in torch.randperm(len(x)).split(batch_size):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item() * len(idx))
    return sum(losses) / len(x)


@torch.no_grad()
def macro_f1(model, x, y):
    model.eval()
    return f1_score(y.numpy(), model(x).argmax(1).numpy(), average="macro")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=25)
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--batch-size", type=int, default=64)
    args = ap.parse_args([])
    torch.manual_seed(8)

    (x_tr, y_tr), (x_va, y_va), (x_te, y_te) = (make_sounds(n, s) for n, s in ((1500, 2), (800, 3), (800, 4)))
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, STATES))
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="min", factor=0.4, patience=3)

    for epoch in range(args.epochs):
        loss = run_epoch(model, opt, x_tr, y_tr, args.batch_size)
        f1 = macro_f1(model, x_va, y_va)
        plateau.step(1.0 - f1)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}  loss {loss:.4f}  valid macro F1 {f1:.4f}  lr {plateau.get_last_lr()[0]:.4f}")
    print(f"test macro F1 {macro_f1(model, x_te, y_te):.4f}")


if __name__ == "__main__":
    main()
