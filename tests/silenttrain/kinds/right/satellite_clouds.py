"""Cloud type from small multispectral patches; all batches have the same size."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(24)
BATCH, TYPES, BANDS, SIDE = 64, 4, 3, 8
N_TRAIN, N_VALID = 32 * BATCH, 8 * BATCH


def make_patches(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(TYPES, size=n)
    tone = np.array([[0.2, 0.1, 0.5], [0.4, 0.3, 0.2], [0.1, 0.4, 0.3], [0.35, 0.35, 0.45]])
    rough = np.array([0.4, 0.8, 0.5, 0.9])
    x = 1.2 * tone[y][:, :, None, None] + rough[y][:, None, None, None] * rng.normal(size=(n, BANDS, SIDE, SIDE))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(y))


class Trainer:
    def __init__(self, model, train, valid):
        self.model, self.train_loader, self.valid_loader = model, train, valid
        self.opt = torch.optim.Adam(model.parameters(), lr=3e-3)

    def train_epoch(self):
        self.model.train()
        losses = []
        for x, y in self.train_loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def valid_epoch(self):
        self.model.eval()
        loss, acc = 0.0, 0.0
        for x, y in self.valid_loader:
            logits = self.model(x)
            loss += nn.functional.cross_entropy(logits, y).item()
            acc += (logits.argmax(1) == y).float().mean().item()
        return loss / len(self.valid_loader), acc / len(self.valid_loader)

    def fit(self, epochs):
        for epoch in range(epochs):
            train_loss = self.train_epoch()
            valid_loss, valid_acc = self.valid_epoch()
            print(f"epoch {epoch}: train {train_loss:.4f}  valid {valid_loss:.4f}  acc {valid_acc:.4f}")


def main():
    train = DataLoader(make_patches(N_TRAIN, 1), batch_size=BATCH, shuffle=True, drop_last=True)
    valid = DataLoader(make_patches(N_VALID, 2), batch_size=BATCH)
    model = nn.Sequential(
        nn.Conv2d(BANDS, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, TYPES),
    )
    Trainer(model, train, valid).fit(10)


if __name__ == "__main__":
    main()
