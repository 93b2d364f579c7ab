"""Landslide mapping: an ensemble votes per pixel, scored by one IoU and Dice over all test tiles."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(89)
SIDE, CLASSES, MEMBERS = 20, 3, 2


def make_tiles(n, seed):
    """Class 0 stable, 1 scar, 2 deposit; a third of the tiles has no landslide at all."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    label = np.zeros((n, SIDE, SIDE), dtype=np.int64)
    for i in np.flatnonzero(rng.random(n) < 0.67):
        cy, cx = rng.uniform(4, 9), rng.uniform(5, 15)
        label[i][np.hypot((yy - cy) / 1.5, xx - cx) < rng.uniform(2, 3.5)] = 1
        label[i][np.hypot(yy - cy - 7, (xx - cx) / 1.5) < rng.uniform(2, 3.5)] = 2
    tone = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0]])
    x = tone[label].transpose(0, 3, 1, 2) + 0.6 * rng.normal(size=(n, 2, SIDE, SIDE))
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(label)


def member():
    return nn.Sequential(
        nn.Conv2d(2, 12, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=2, dilation=2),
        nn.ReLU(),
        nn.Conv2d(12, CLASSES, 1),
    )


def train_member(x, y, seed, epochs=5):
    torch.manual_seed(seed)
    net = member()
    opt = torch.optim.Adam(net.parameters(), lr=8e-3)
    for _ in range(epochs):
        net.train()
        for idx in torch.randperm(len(x)).split(16):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"member {seed}: last batch loss {loss.item():.4f}")
    return net.eval()


@torch.no_grad()
def vote(nets, x):
    probs = torch.stack([net(x).softmax(dim=1) for net in nets])  # member, tile, class, row, col
    by_class = probs.mean(0).transpose(0, 1)  # class, tile, row, col
    return by_class.argmax(0)


def main():
    x_tr, y_tr = make_tiles(320, 1)
    x_te, y_te = make_tiles(150, 2)
    nets = [train_member(x_tr, y_tr, seed) for seed in range(MEMBERS)]

    inter, pred_area, true_area = np.zeros(CLASSES), np.zeros(CLASSES), np.zeros(CLASSES)
    for idx in torch.arange(len(x_te)).split(40):
        pred, true = vote(nets, x_te[idx]), y_te[idx]
        for c in range(CLASSES):
            inter[c] += ((pred == c) & (true == c)).sum().item()
            pred_area[c] += (pred == c).sum().item()
            true_area[c] += (true == c).sum().item()
    iou = inter / (pred_area + true_area - inter)
    dice = 2 * inter / (pred_area + true_area)
    for c, name in enumerate(("stable", "scar", "deposit")):
        print(f"{name:8s} global IoU {iou[c]:.4f}  global Dice {dice[c]:.4f}")
    print(f"pixel accuracy {inter.sum() / true_area.sum():.4f}   mean IoU over classes {iou.mean():.4f}")


if __name__ == "__main__":
    main()
