"""Mineral grains under the microscope: five unequal classes, confusion matrix kept by hand."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MINERALS = ["quartz", "feldspar", "mica", "garnet", "zircon"]
SHARE = [0.45, 0.25, 0.15, 0.1, 0.05]


def make_grains(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(len(MINERALS), size=n, p=SHARE)
    centre = np.random.default_rng(2).normal(0, 0.9, size=(len(MINERALS), 10))
    x = centre[y] + rng.normal(size=(n, 10))
    x[:, 0] *= 1 + 0.5 * (y == 3)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(y))


class Confusion:
    """Rows are predictions, columns are the true minerals."""

    def __init__(self, k):
        self.table = torch.zeros(k, k, dtype=torch.long)

    def update(self, pred, true):
        k = len(self.table)
        self.table += torch.bincount(pred * k + true, minlength=k * k).view(k, k)

    def recall(self):
        return self.table.diag() / self.table.sum(0).clamp(min=1)

    def precision(self):
        return self.table.diag() / self.table.sum(1).clamp(min=1)

    def accuracy(self):
        return (self.table.diag().sum() / self.table.sum()).item()


class GrainClassifier:
    def __init__(self, lr=3e-3):
        k = len(MINERALS)
        self.net = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, k))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.net.train()
            total = 0.0
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(y)
            print(f"epoch {epoch}: loss {total / len(loader.dataset):.4f}")
        return self

    @torch.no_grad()
    def confusion(self, loader):
        self.net.eval()
        cm = Confusion(len(MINERALS))
        for x, y in loader:
            cm.update(self.net(x).argmax(dim=-1), y)
        return cm


if __name__ == "__main__":
    torch.manual_seed(15)
    train = DataLoader(make_grains(3000, 1), batch_size=64, shuffle=True)
    test = DataLoader(make_grains(1500, 2), batch_size=400)
    cm = GrainClassifier().fit(train, epochs=8).confusion(test)
    for name, p, r in zip(MINERALS, cm.precision(), cm.recall()):
        print(f"{name:9s} precision {p:.3f}  recall {r:.3f}")
    print(f"accuracy {cm.accuracy():.4f}  balanced accuracy {cm.recall().mean():.4f}")
