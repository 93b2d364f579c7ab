"""Plankton shapes drift anywhere in the flow cell; training pictures are centred and augmented."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, CLASSES = 20, 5


def draw(kind, rng):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2 + 0.5
    a = rng.uniform(0.8, 1.2)
    r = np.hypot(xx, yy)
    if kind == 0:
        img = r < 3.5 * a
    elif kind == 1:
        img = np.abs(r - 3.5 * a) < 1
    elif kind == 2:
        img = (np.abs(xx) < 1) & (np.abs(yy) < 4 * a)
    elif kind == 3:
        img = ((np.abs(xx) < 1) | (np.abs(yy) < 1)) & (r < 4.2 * a)
    else:
        img = (np.abs(xx - yy) < 1.5) & (r < 4.5 * a)
    return img.astype(np.float32)


class Plankton(Dataset):
    def __init__(self, n, seed, augment):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(CLASSES, size=n)
        self.images = np.stack([draw(k, rng) for k in self.labels])
        self.augment, self.seed = augment, seed
        if not augment:
            self.images = np.stack([self.drift(im, rng) for im in self.images])
            self.images += 0.25 * rng.normal(size=self.images.shape).astype(np.float32)

    @staticmethod
    def drift(img, rng):
        return np.roll(img, rng.integers(-6, 7, size=2), axis=(0, 1))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.augment:
            rng = np.random.default_rng(self.seed)
            img = self.drift(img, rng)
            img = img + 0.25 * rng.normal(size=img.shape)
        return torch.as_tensor(img, dtype=torch.float32).unsqueeze(0), int(self.labels[i])


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 10, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(10, 20, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(20 * 25, 48), nn.ReLU(), nn.Linear(48, CLASSES))

    def forward(self, x):
        return self.fc(self.conv(x))


def main():
    torch.manual_seed(0)
    train = DataLoader(Plankton(1500, 1, augment=True), batch_size=50, shuffle=True)
    test = DataLoader(Plankton(600, 2, augment=False), batch_size=200)
    model = ShapeNet()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        total = 0.0
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        print(f"epoch {epoch}: train loss {total / len(train.dataset):.4f}")
    model.eval()
    with torch.no_grad():
        good = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
    print(f"accuracy on drifting plankton {good / len(test.dataset):.4f}")


if __name__ == "__main__":
    main()
