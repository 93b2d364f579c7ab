"""Multi-label tags (water, crops, roads, ...) for synthetic satellite patches."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TAGS = ["water", "forest", "crops", "road", "urban", "cloud", "bare", "snow"]
BANDS, SIDE = 6, 8


def make_patches(n, seed):
    rng = np.random.default_rng(seed)
    spectra = np.random.default_rng(100).normal(0, 1, size=(len(TAGS), BANDS))
    y = (rng.random((n, len(TAGS))) < 0.3).astype(np.float32)
    cover = y * rng.uniform(0.1, 0.7, size=y.shape)
    img = np.einsum("nt,tb->nb", cover, spectra)[:, :, None, None]
    img = img + 0.3 * rng.normal(size=(n, BANDS, 1, 1)) + 0.5 * rng.normal(size=(n, BANDS, SIDE, SIDE))
    return TensorDataset(torch.tensor(img, dtype=torch.float32), torch.from_numpy(y))


class PatchTagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(BANDS, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 1))
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, len(TAGS)))

    def forward(self, x):
        return self.head(self.conv(x).mean((2, 3)))


class TagTrainer:
    def __init__(self, model, lr=3e-3):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.criterion = nn.BCEWithLogitsLoss()

    def epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(x)
        return total / len(loader.dataset)

    @torch.no_grad()
    def evaluate(self, loader, threshold=0.5):
        self.model.eval()
        tp = fp = fn = 0
        for x, y in loader:
            pred = self.model(x) > threshold
            truth = y.bool()
            tp += (pred & truth).sum(0)
            fp += (pred & ~truth).sum(0)
            fn += (~pred & truth).sum(0)
        precision, recall = tp.sum() / (tp + fp).sum(), tp.sum() / (tp + fn).sum()
        return {
            "micro precision": precision.item(),
            "micro recall": recall.item(),
            "micro F1": (2 * precision * recall / (precision + recall)).item(),
        }


if __name__ == "__main__":
    torch.manual_seed(3)
    train = DataLoader(make_patches(2500, 1), batch_size=64, shuffle=True)
    valid = DataLoader(make_patches(1000, 2), batch_size=250)
    trainer = TagTrainer(PatchTagger())
    for epoch in range(12):
        loss = trainer.epoch(train)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}: loss {loss:.4f}")
    for name, value in trainer.evaluate(valid).items():
        print(f"{name:16s} {value:.4f}")
