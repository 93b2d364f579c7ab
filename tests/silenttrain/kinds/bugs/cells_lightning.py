"""Classify stained cells (uint8 images) with a small convolutional network."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(4, verbose=False)
SIZE = 16


def make_images(n):
    label = torch.randint(0, 3, (n,))
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    cx, cy = 5 + 6 * torch.rand(n, 1, 1), 5 + 6 * torch.rand(n, 1, 1)
    dx, dy = xx - cx, yy - cy
    stretch = torch.tensor([1.0, 2.2, 0.45])[label][:, None, None]
    blob = torch.exp(-(stretch * dx**2 + dy**2 / stretch) / 8)
    image = 180 * blob + 40 + 25 * torch.randn(n, SIZE, SIZE)
    return image.clamp(0, 255).to(torch.uint8), label


class CellDataset(Dataset):
    def __init__(self, n, augment=False):
        self.images, self.labels = make_images(n)
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i].float().unsqueeze(0)
        if self.augment:
            image = image / 255
            if torch.rand(()) < 0.5:
                image = image.flip(-1)
        return image, self.labels[i]


class CellNet(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(24 * 16, 3),
        )

    def training_step(self, batch, batch_idx):
        image, label = batch
        return nn.functional.cross_entropy(self.net(image), label)

    def validation_step(self, batch, batch_idx):
        image, label = batch
        logits = self.net(image)
        self.log("val_loss", nn.functional.cross_entropy(logits, label))
        self.log("val_acc", (logits.argmax(1) == label).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


trainer = lightning.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
model = CellNet()
trainer.fit(model, DataLoader(CellDataset(900, augment=True), batch_size=60, shuffle=True))
result = trainer.validate(model, DataLoader(CellDataset(300), batch_size=100), verbose=False)[0]
print(f"validation loss {result['val_loss']:.4f}, accuracy {result['val_acc']:.3f}")
