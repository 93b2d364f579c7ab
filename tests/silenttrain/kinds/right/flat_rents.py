"""Monthly rents of flats; the net works on standardised log rents."""

import argparse

import numpy as np
import torch
from torch import nn


def make_flats(n, seed):
    rng = np.random.default_rng(seed)
    size, rooms, dist = rng.gamma(8, 9, n), rng.integers(1, 6, n), rng.exponential(4, n)
    age = rng.uniform(0, 100, n)
    log_rent = (
        4.2 + 0.62 * np.log(size) - 0.05 * dist + 0.03 * rooms - 0.3 * np.sin(age / 35) + 0.12 * rng.normal(size=n)
    )
    return np.stack([np.log(size), rooms, dist, age / 35], 1), np.exp(log_rent)


def standardise(train, *others):
    mean, std = train.mean(0), train.std(0)
    return [torch.tensor((a - mean) / std, dtype=torch.float32) for a in (train, *others)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=4e-3)
    args = ap.parse_args([])
    torch.manual_seed(85)

    x_tr, rent_tr = make_flats(2400, 1)
    x_te, rent_te = make_flats(700, 2)
    z_tr, z_te = standardise(x_tr, x_te)
    centre, scale = np.log(rent_tr).mean(), np.log(rent_tr).std()
    t_tr = torch.tensor((np.log(rent_tr) - centre) / scale, dtype=torch.float32)
    t_te = torch.tensor((np.log(rent_te) - centre) / scale, dtype=torch.float32)

    model = nn.Sequential(nn.Linear(4, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 1), nn.Flatten(0))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(z_tr)).split(args.batch_size):
            loss = nn.functional.mse_loss(model(z_tr[idx]), t_tr[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}  mse {total / len(z_tr):.4f} (standardised log units)")

    model.eval()
    with torch.no_grad():
        out = model(z_te)
    z_rmse = (out - t_te).pow(2).mean().sqrt().item()
    rent_hat = np.exp(out.numpy() * scale + centre)
    print(f"RMSE {z_rmse:.4f} in standardised log units, {z_rmse * scale:.4f} in log units")
    print(
        f"MAE {np.abs(rent_hat - rent_te).mean():.1f} euro   median relative error "
        f"{np.median(np.abs(rent_hat / rent_te - 1)):.4f}   mean rent {rent_te.mean():.1f} euro"
    )


if __name__ == "__main__":
    main()
