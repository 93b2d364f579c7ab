"""Compressive strength of concrete mixes."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(52)


def make_mixes(n=1600, seed=52):
    rng = np.random.default_rng(seed)
    cement, water = rng.uniform(150, 500, n), rng.uniform(130, 230, n)
    ash, age = rng.gamma(1.0, 50, n), rng.integers(1, 120, n)
    strength = 95 * np.exp(-1.1 * water / cement) * np.log1p(age) / 4 + 0.03 * ash
    strength += rng.normal(0, 2.0, n)
    return np.stack([cement, water, ash, age], 1).astype(np.float32), strength.astype(np.float32)


class StrengthNet(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("std", torch.from_numpy(std))
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net((x - self.mean) / self.std) * 20 + 35


def train(model, loader, epochs):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}  train mse {total / len(loader.dataset):.2f}")


def predict(model, x):
    model.eval()
    with torch.no_grad():
        return model(torch.from_numpy(x)).numpy()


def regression_report(y_true, y_pred):
    err = y_pred - y_true
    mse = np.mean(err**2)
    return {
        "RMSE": np.sqrt(mse),
        "MAE": np.mean(np.abs(err)),
        "R2": 1 - mse / np.var(y_true),
    }


def main():
    x, y = make_mixes()
    x_tr, y_tr, x_te, y_te = x[:1200], y[:1200], x[1200:], y[1200:]
    model = StrengthNet(x_tr.mean(0), x_tr.std(0))
    loader = DataLoader(TensorDataset(torch.from_numpy(x_tr), torch.from_numpy(y_tr)), batch_size=50, shuffle=True)
    train(model, loader, epochs=20)
    for name, value in regression_report(y_te, predict(model, x_te)).items():
        print(f"test {name} {value:.3f}")


if __name__ == "__main__":
    main()
