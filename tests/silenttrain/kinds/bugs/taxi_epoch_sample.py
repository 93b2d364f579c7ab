"""Predict the length of taxi rides; each epoch draws a part of a large table."""

import torch
from torch import nn

ROWS, PER_EPOCH, BATCH, SEED = 12000, 512, 64, 17


def rides(n, g):
    pickup, drop = torch.rand(n, 2, generator=g), torch.rand(n, 2, generator=g)
    hour = 24 * torch.rand(n, generator=g)
    rush = torch.exp(-((hour - 8.5) ** 2) / 3) + torch.exp(-((hour - 17.5) ** 2) / 4)
    minutes = 4 + 20 * (pickup - drop).abs().sum(1) * (1 + 0.8 * rush) + 2 * torch.randn(n, generator=g)
    return torch.cat([pickup, drop, hour[:, None] / 24], dim=1), minutes


class Trainer:
    def __init__(self, model, x, y):
        self.model, self.x = model, x
        self.mean, self.std = y.mean(), y.std()
        self.y = (y - self.mean) / self.std
        self.optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

    def epoch_rows(self):
        torch.manual_seed(SEED)
        return torch.randperm(len(self.x))[:PER_EPOCH]

    def run_epoch(self):
        self.model.train()
        total = 0.0
        for rows in self.epoch_rows().split(BATCH):
            pred = self.model(self.x[rows]).squeeze(1)
            loss = nn.functional.mse_loss(pred, self.y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows)
        return total / PER_EPOCH

    @torch.no_grad()
    def error(self, x, y):
        self.model.eval()
        pred = self.model(x).squeeze(1) * self.std + self.mean
        return (pred - y).abs().mean().item()


def main():
    torch.manual_seed(SEED)
    g = torch.Generator().manual_seed(5)
    x, y = rides(ROWS, g)
    x_test, y_test = rides(2000, g)
    model = nn.Sequential(nn.Linear(5, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    trainer = Trainer(model, x, y)
    for epoch in range(24):
        train = trainer.run_epoch()
        if epoch % 6 == 5:
            print(f"epoch {epoch + 1:2d}  train mse {train:.4f}  test error {trainer.error(x_test, y_test):.3f} min")
    print(f"mean error on the test rides: {trainer.error(x_test, y_test):.3f} minutes")


main()
