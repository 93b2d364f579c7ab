"""Lightning image classifier on uint8 pictures."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)
SIDE, CLASSES = 10, 4
templates = torch.rand(CLASSES, 1, SIDE, SIDE)


def render(n):
    y = torch.randint(CLASSES, (n,))
    img = 90 + 70 * templates[y] + 45 * torch.randn(n, 1, SIDE, SIDE)
    return img.clamp(0, 255).to(torch.uint8), y


class Pictures(Dataset):
    MEAN, STD = 0.5, 0.2

    def __init__(self, images, labels, train):
        self.images, self.labels, self.train = images, labels, train

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i].float()
        if self.train:
            image = image / 255
            # small brightness jitter
            image = image + 0.03 * torch.randn(1)
        return (image - self.MEAN) / self.STD, self.labels[i]


class ConvNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 25, CLASSES),
        )

    def training_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.log_dict(
            {"train_loss": loss, "train_acc": (logits.argmax(1) == y).float().mean()}, on_step=False, on_epoch=True
        )
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_acc": (logits.argmax(1) == y).float().mean()})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


train_set = Pictures(*render(1200), train=True)
val_set = Pictures(*render(400), train=False)
trainer = L.Trainer(
    max_epochs=5,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(ConvNet(), DataLoader(train_set, batch_size=64, shuffle=True), DataLoader(val_set, batch_size=200))
print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
