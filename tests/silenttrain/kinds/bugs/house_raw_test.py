"""Estimate house prices (in thousands) with a small network."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def houses(n):
    area = 60 + 180 * torch.rand(n)
    year = 1950 + 70 * torch.rand(n)
    rooms = (area / 30 + torch.randn(n)).round().clamp(min=1)
    distance = 20 * torch.rand(n)
    price = 50 + 1.5 * area + 0.8 * (year - 1950) - 4 * distance + 6 * rooms + 10 * torch.randn(n)
    return torch.stack([area, year, rooms, distance], dim=1), price


class StandardScaler:
    def fit(self, x):
        self.mean, self.std = x.mean(0), x.std(0)
        return self

    def transform(self, x):
        return (x - self.mean) / self.std


class Experiment:
    def __init__(self):
        x, y = houses(1400)
        self.scaler = StandardScaler().fit(x[:1000])
        self.train = TensorDataset(self.scaler.transform(x[:1000]), y[:1000])
        self.test = TensorDataset(x[1000:], y[1000:])
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)

    def run_epoch(self):
        total = 0.0
        for x, y in DataLoader(self.train, batch_size=100, shuffle=True):
            loss = nn.functional.mse_loss(self.net(x).squeeze(1), y / 100)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(x)
        return total / len(self.train)

    @torch.no_grad()
    def evaluate(self):
        error, count = 0.0, 0
        for x, y in DataLoader(self.test, batch_size=200):
            pred = 100 * self.net(x).squeeze(1)
            error += (pred - y).abs().sum().item()
            count += len(y)
        return error / count


exp = Experiment()
for epoch in range(14):
    loss = exp.run_epoch()
    if epoch % 4 == 1:
        print(f"epoch {epoch + 1}: loss {loss:.4f}")
print(f"mean error on the test houses: {exp.evaluate():.2f} thousand")
