"""Sorts seeds by outline; every epoch draws a new, reproducible rotation and noise per picture."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, KINDS, BASE_SEED = 20, 4, 123


def outline(kind, angle, noise):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2 + 0.5
    u = np.cos(angle) * xx + np.sin(angle) * yy
    v = -np.sin(angle) * xx + np.cos(angle) * yy
    r, phi = np.hypot(u, v), np.arctan2(v, u)
    radius = [6 + 0 * phi, 6 + 2.2 * np.cos(2 * phi), 6 + 2.2 * np.cos(3 * phi), 6 + 2.2 * np.cos(4 * phi)][kind]
    return ((r < radius) + noise).astype(np.float32)


class Seeds(Dataset):
    def __init__(self, n, seed, train):
        rng = np.random.default_rng(seed)
        self.kind = rng.integers(KINDS, size=n)
        self.train, self.epoch = train, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        stream = (BASE_SEED, self.epoch, i) if self.train else (BASE_SEED + 1, i)
        rng = np.random.default_rng(stream)
        img = outline(self.kind[i], rng.uniform(0, 2 * np.pi), 0.5 * rng.normal(size=(SIDE, SIDE)))
        return torch.from_numpy(img).unsqueeze(0), int(self.kind[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(600, 48), nn.ReLU(), nn.Linear(48, KINDS))

    def forward(self, x):
        return self.fc(self.conv(x))


def main():
    torch.manual_seed(3)
    train_set, test_set = Seeds(1000, 1, True), Seeds(400, 2, False)
    train = DataLoader(train_set, batch_size=50, shuffle=True)
    test = DataLoader(test_set, batch_size=200)
    model = Net()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        train_set.set_epoch(epoch)
        model.train()
        total = 0.0
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        print(f"epoch {epoch}: loss {total / len(train_set):.4f}")
    model.eval()
    with torch.no_grad():
        good = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
    print(f"test accuracy {good / len(test_set):.4f}")


if __name__ == "__main__":
    main()
