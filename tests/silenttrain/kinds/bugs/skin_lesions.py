"""Finds lesions on synthetic skin pictures; about two in five pictures show healthy skin."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(16)
SIDE = 20


def make_pictures(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    img = 0.45 * rng.normal(size=(n, 1, SIDE, SIDE)) + rng.normal(0, 0.1, size=(n, 1, 1, 1))
    mask = np.zeros((n, 1, SIDE, SIDE))
    for i in range(n):
        if rng.random() < 0.6:
            cy, cx = rng.uniform(5, SIDE - 5, size=2)
            a, b = rng.uniform(2.5, 5, size=2)
            mask[i, 0] = ((yy - cy) / a) ** 2 + ((xx - cx) / b) ** 2 < 1
    img = img + 1.3 * mask
    return torch.tensor(img, dtype=torch.float32), torch.tensor(mask, dtype=torch.float32)


def segmenter(width=12):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=2, dilation=2),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 1, 1),
    )


def iou_per_image(logits, mask, eps=1e-7):
    pred = logits > 0
    truth = mask > 0.5
    inter = (pred & truth).flatten(1).sum(1).float()
    union = (pred | truth).flatten(1).sum(1).float()
    return inter / (union + eps)


def train(model, img, mask, epochs=7, batch_size=32, lr=5e-3):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(img)).split(batch_size):
            loss = nn.functional.binary_cross_entropy_with_logits(model(img[idx]), mask[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch}: pixel loss {total / len(img):.4f}")


@torch.no_grad()
def evaluate(model, img, mask):
    model.eval()
    logits = torch.cat([model(part) for part in img.split(100)])
    pixel = ((logits > 0) == (mask > 0.5)).float().mean().item()
    return pixel, iou_per_image(logits, mask).mean().item()


if __name__ == "__main__":
    net = segmenter()
    train(net, *make_pictures(640, 1))
    pixel_acc, mean_iou = evaluate(net, *make_pictures(300, 2))
    print(f"test pixel accuracy {pixel_acc:.4f}")
    print(f"test mean IoU       {mean_iou:.4f}")
