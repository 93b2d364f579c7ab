"""Weed species from leaf descriptors; recall and precision per species."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(83)
SPECIES = ("chickweed", "cleavers", "charlock", "fat hen")
SHARE = (0.5, 0.3, 0.12, 0.08)


def make_leaves(n, seed):
    rng = np.random.default_rng(seed)
    centre = np.random.default_rng(4).normal(0, 0.8, size=(4, 2, 10))
    y = rng.choice(4, size=n, p=SHARE)
    x = centre[y, rng.integers(2, size=n)] + 0.9 * rng.normal(size=(n, 10))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(y))


def train(model, loader, epochs):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}: loss {total / len(loader.dataset):.4f}")


@torch.no_grad()
def prediction_table(model, loader):
    """Rows are what the model said, columns what the plant was."""
    model.eval()
    table = torch.zeros(4, 4, dtype=torch.long)
    for x, y in loader:
        said = model(x).argmax(1)
        table.index_put_((said, y), torch.ones_like(y), accumulate=True)
    return table.numpy()


def main():
    loader = DataLoader(make_leaves(3000, 1), batch_size=60, shuffle=True)
    test = DataLoader(make_leaves(1500, 2), batch_size=400)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
    train(model, loader, epochs=15)

    table = prediction_table(model, test)
    found = np.diag(table)
    recall = found / table.sum(axis=0)
    precision = found / table.sum(axis=1)
    f1 = 2 * precision * recall / (precision + recall)
    for k, name in enumerate(SPECIES):
        print(f"{name:10s} recall {recall[k]:.3f}  precision {precision[k]:.3f}  f1 {f1[k]:.3f}")
    print(f"macro f1 {f1.mean():.4f}   accuracy (micro f1) {found.sum() / table.sum():.4f}")


if __name__ == "__main__":
    main()
