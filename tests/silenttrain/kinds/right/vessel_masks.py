"""Vessel segmentation; pictures and annotations come from two separate loaders."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(20)
SIDE = 24


def render(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    masks = np.zeros((n, 1, SIDE, SIDE), dtype=np.float32)
    for i in range(n):
        for _ in range(2):
            a, off = rng.uniform(0, np.pi), rng.uniform(-6, 6)
            wob = 1.5 * np.sin(0.4 * xx + rng.uniform(0, 6))
            d = np.cos(a) * (xx - 11.5) + np.sin(a) * (yy - 11.5 + wob) - off
            masks[i, 0] = np.maximum(masks[i, 0], np.abs(d) < 1.6)
    images = masks + 0.6 * rng.normal(size=masks.shape)
    return torch.tensor(images, dtype=torch.float32), torch.from_numpy(masks)


class PairedTrainer:
    def __init__(self, model, images, masks, batch_size, lr):
        self.model = model
        self.gens = (torch.Generator(), torch.Generator())
        self.image_loader, self.mask_loader = (
            DataLoader(TensorDataset(t), batch_size=batch_size, shuffle=True, generator=g)
            for t, g in zip((images, masks), self.gens)
        )
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def epoch(self, number):
        for g in self.gens:
            g.manual_seed(1000 + number)
        self.model.train()
        total = n = 0
        for (x,), (m,) in zip(self.image_loader, self.mask_loader):
            loss = nn.functional.binary_cross_entropy_with_logits(self.model(x), m)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(x)
            n += len(x)
        return total / n


@torch.no_grad()
def mean_iou(model, images, masks):
    model.eval()
    pred, true = model(images) > 0, masks > 0.5
    inter = (pred & true).flatten(1).sum(1).float()
    union = (pred | true).flatten(1).sum(1).float()
    return (inter / union.clamp(min=1)).mean().item()


def main():
    x_tr, m_tr = render(400, 1)
    x_te, m_te = render(120, 2)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=2, dilation=2),
        nn.ReLU(),
        nn.Conv2d(12, 1, 3, padding=1),
    )
    trainer = PairedTrainer(model, x_tr, m_tr, batch_size=20, lr=5e-3)
    for epoch in range(6):
        print(f"epoch {epoch}: loss {trainer.epoch(epoch):.4f}")
    print(f"test mean IoU per picture {mean_iou(model, x_te, m_te):.4f}")


if __name__ == "__main__":
    main()
