"""Segments bright nuclei in synthetic microscopy tiles."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(14)
SIDE = 24


class Tiles(Dataset):
    """Images of a slide set."""

    def __init__(self, images):
        self.images = torch.from_numpy(images)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        return (img - img.mean()) / (img.std() + 1e-6)


class Masks(Dataset):
    """Annotations of a slide set."""

    def __init__(self, masks):
        self.masks = torch.from_numpy(masks)

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, i):
        return self.masks[i].float()


def render(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    images = np.zeros((n, 1, SIDE, SIDE), dtype=np.float32)
    masks = np.zeros_like(images)
    for i in range(n):
        for _ in range(rng.integers(1, 4)):
            cy, cx = rng.normal(11.5, 3.0, size=2).clip(3, 20)
            r = rng.uniform(4, 6.5)
            masks[i, 0] = np.maximum(masks[i, 0], np.hypot(yy - cy, xx - cx) < r)
        images[i, 0] = 0.9 * masks[i, 0] + 0.5 * rng.normal(size=(SIDE, SIDE)) + 0.02 * xx
    return images, masks


def build_unetlike():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=2, dilation=2),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 1, 1),
    )


def loaders(n, seed, batch_size, shuffle):
    images, masks = render(n, seed)
    return (
        DataLoader(Tiles(images), batch_size=batch_size, shuffle=shuffle),
        DataLoader(Masks(masks), batch_size=batch_size, shuffle=shuffle),
    )


@torch.no_grad()
def dice(model, tiles, masks, eps=1e-6):
    model.eval()
    scores = []
    for x, m in zip(tiles, masks):
        pred = (model(x) > 0).float()
        inter = (pred * m).flatten(1).sum(1)
        scores.append((2 * inter + eps) / (pred.flatten(1).sum(1) + m.flatten(1).sum(1) + eps))
    return torch.cat(scores).mean().item()


def main():
    train_tiles, train_masks = loaders(480, 1, 16, shuffle=True)
    test_tiles, test_masks = loaders(120, 2, 40, shuffle=False)
    model = build_unetlike()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for x, m in zip(train_tiles, train_masks):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), m)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(x)
        print(f"epoch {epoch}: loss {total / len(train_tiles.dataset):.4f}")
    print(f"test Dice {dice(model, test_tiles, test_masks):.4f}")


if __name__ == "__main__":
    main()
