"""Train a load forecaster with early stopping and restore the best weights before saving."""

import copy
import os

import torch
from torch import nn

torch.manual_seed(209)


def load_curves(n, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=gen)
    y = x[:, 0] - 0.5 * x[:, 1] + torch.relu(x[:, 2]) * x[:, 3] + 0.7 * torch.randn(n, generator=gen)
    return x, y.unsqueeze(1)


@torch.no_grad()
def mse(model, x, y):
    model.eval()
    return nn.functional.mse_loss(model(x), y).item()


def main():
    x, y = load_curves(120, 1)
    x_val, y_val = load_curves(300, 2)
    model = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    best = {"loss": float("inf"), "epoch": -1, "state": None}
    patience = 8
    for epoch in range(30):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(24):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        val = mse(model, x_val, y_val)
        print(f"epoch {epoch:2d} train {total / len(x):.4f} val {val:.4f}")
        if val < best["loss"]:
            best = {"loss": val, "epoch": epoch, "state": copy.deepcopy(model.state_dict())}
        elif epoch - best["epoch"] >= patience:
            print("early stop")
            break

    print(f"last epoch val {mse(model, x_val, y_val):.4f}")
    model.load_state_dict(best["state"])
    print(f"restored epoch {best['epoch']} val {mse(model, x_val, y_val):.4f}")
    os.makedirs("out", exist_ok=True)
    torch.save(model.state_dict(), "out/load_forecaster.pt")


if __name__ == "__main__":
    main()
