"""Grades weld seams from small grey images with a compact CNN."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)
GRADES, SIDE = 4, 16


def make_welds(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    grade = rng.integers(GRADES, size=n)
    img = np.zeros((n, 1, SIDE, SIDE), dtype=np.float32)
    for i, g in enumerate(grade):
        row = rng.uniform(5, 11)
        seam = np.exp(-((yy - row - g * 0.8 * np.sin(0.6 * xx + rng.uniform(0, 6))) ** 2) / 3)
        img[i, 0] = seam + 0.4 * rng.normal(size=(SIDE, SIDE))
    return TensorDataset(torch.from_numpy(img), torch.from_numpy(grade))


class WeldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(24 * 16, GRADES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Trainer:
    def __init__(self, model, train_loader, test_loader, epochs):
        self.model, self.train_loader, self.test_loader = model, train_loader, test_loader
        self.epochs = epochs
        self.opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=4, gamma=0.3)
        self.loss_fn = nn.CrossEntropyLoss()

    def train_one_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.opt.zero_grad(set_to_none=True)
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            self.opt.step()
            self.sched.step()
            total += loss.item() * len(x)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def test(self):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.test_loader)
        return hits / len(self.test_loader.dataset)

    def fit(self):
        for epoch in range(1, self.epochs + 1):
            loss = self.train_one_epoch()
            if epoch % 2 == 0:
                print(f"epoch {epoch:2d}: loss {loss:.4f}")
        print(f"test accuracy after {self.epochs} epochs: {self.test():.4f}")


if __name__ == "__main__":
    train = DataLoader(make_welds(1600, 1), batch_size=64, shuffle=True)
    test = DataLoader(make_welds(600, 2), batch_size=200)
    Trainer(WeldNet(), train, test, epochs=12).fit()
