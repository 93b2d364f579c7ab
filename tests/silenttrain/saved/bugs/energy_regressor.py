"""Regress a building's energy use with an MLP and keep the best validation checkpoint."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(n, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=gen)
    y = 2 * x[:, 0] - x[:, 1] * x[:, 2] + torch.sin(2 * x[:, 3]) + 0.8 * torch.randn(n, generator=gen)
    return x, y.unsqueeze(1)


def build_model():
    return nn.Sequential(
        nn.Linear(10, 64),
        nn.GELU(),
        nn.Linear(64, 64),
        nn.GELU(),
        nn.Linear(64, 1),
    )


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total, count = 0.0, 0
    for x, y in loader:
        total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
        count += len(x)
    return total / count


def main():
    torch.manual_seed(5)
    train_loader = DataLoader(TensorDataset(*make_data(96, seed=1)), batch_size=16, shuffle=True)
    val_loader = DataLoader(TensorDataset(*make_data(200, seed=2)), batch_size=64)
    test_loader = DataLoader(TensorDataset(*make_data(200, seed=3)), batch_size=64)

    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

    best_loss = float("inf")
    best_epoch = -1
    best_state = None
    for epoch in range(25):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        val_loss = validate(model, val_loader)
        if val_loss < best_loss:
            best_loss, best_epoch = val_loss, epoch
            best_state = model.state_dict()
        print(f"epoch {epoch:2d} train {running / len(train_loader):.4f} val {val_loss:.4f}")

    print(f"best epoch {best_epoch} with val {best_loss:.4f}")
    model.load_state_dict(best_state)
    os.makedirs("out", exist_ok=True)
    torch.save({"model": best_state, "epoch": best_epoch, "val_loss": best_loss}, "out/best.pt")
    print(f"test mse {validate(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
