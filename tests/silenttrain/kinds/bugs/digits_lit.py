"""Small CNN on 8x8 blob images stored as bytes."""

import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)
rng = np.random.default_rng(0)
prototypes = rng.uniform(0, 160, size=(6, 8, 8))


def images(n):
    labels = rng.integers(6, size=n)
    pixels = prototypes[labels] + rng.normal(0, 45, size=(n, 8, 8))
    return np.clip(pixels, 0, 255).astype(np.uint8), labels


class BlobImages(Dataset):
    def __init__(self, n, train):
        self.pixels, self.labels = images(n)
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = torch.from_numpy(self.pixels[i]).float().unsqueeze(0)
        if self.train:
            img = img / 255.0
            img = img + 0.02 * torch.randn_like(img)
        return img, int(self.labels[i])


class CNN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 16, 6),
        )
        self.loss_sum = self.hits = self.rows = 0

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def test_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        self.loss_sum += F.cross_entropy(logits, y, reduction="sum").item()
        self.hits += (logits.argmax(1) == y).sum().item()
        self.rows += len(y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


model = CNN()
trainer = L.Trainer(
    max_epochs=5,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(BlobImages(1200, train=True), batch_size=60, shuffle=True))
trainer.test(model, DataLoader(BlobImages(400, train=False), batch_size=100), verbose=False)
print(f"test loss {model.loss_sum / model.rows:.4f}  test accuracy {model.hits / model.rows:.3f}")
