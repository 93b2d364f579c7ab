"""Calibrates low-cost NO2 sensors against a reference station."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)


def field_campaign(n=3000, seed=8):
    rng = np.random.default_rng(seed)
    temp = rng.normal(1.4, 0.8, n)  # tens of degrees
    rh = rng.uniform(0.2, 0.95, n)
    ozone = rng.gamma(3.0, 0.4, n)
    raw = rng.gamma(2.0, 0.9, n)
    ref = 1.6 * raw - 0.7 * ozone * (temp > 1.2) + 1.1 * np.sin(2 * temp) - 1.5 * (rh - 0.5) ** 2
    ref = ref + rng.normal(0, 0.15, n)
    x = np.stack([raw, temp, rh, ozone], 1).astype(np.float32)
    return x, ref.astype(np.float32)[:, None]


class CalibrationNet(nn.Module):
    def __init__(self, n_in, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.body(x)


def attach_scaling(model, x_train):
    """Raw sensor readings go in; the standardisation belongs to the module."""
    mean, std = x_train.mean(0), x_train.std(0)

    def scale(module, inputs):
        (x,) = inputs
        return ((x - mean) / std,)

    model.register_forward_pre_hook(scale)
    return model


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-4)
        self.criterion = nn.MSELoss()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            seen, total = 0, 0.0
            for x, y in loader:
                self.opt.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.opt.step()
                total += loss.item() * len(x)
                seen += len(x)
            if (epoch + 1) % 5 == 0:
                print(f"epoch {epoch + 1:3d}  train rmse {(total / seen) ** 0.5:.4f}")

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        preds, refs = [], []
        for x, y in loader:
            preds.append(self.model.forward(x))
            refs.append(y)
        pred, ref = torch.cat(preds), torch.cat(refs)
        rmse = (pred - ref).pow(2).mean().sqrt().item()
        r2 = 1 - ((pred - ref).pow(2).sum() / (ref - ref.mean()).pow(2).sum()).item()
        return {"rmse": rmse, "r2": r2}


def main():
    x, y = (torch.from_numpy(a) for a in field_campaign())
    x_tr, y_tr, x_te, y_te = x[:2400], y[:2400], x[2400:], y[2400:]
    model = attach_scaling(CalibrationNet(x.shape[1]), x_tr)
    trainer = Trainer(model, lr=3e-3)
    trainer.fit(DataLoader(TensorDataset(x_tr, y_tr), batch_size=64, shuffle=True), epochs=25)
    scores = trainer.evaluate(DataLoader(TensorDataset(x_te, y_te), batch_size=256))
    print("held-out " + "  ".join(f"{k} {v:.4f}" for k, v in scores.items()))


if __name__ == "__main__":
    main()
