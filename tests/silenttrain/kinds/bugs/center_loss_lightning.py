"""Classifier with a center loss in Lightning."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)


class CenterLossNet(L.LightningModule):
    def __init__(self, dim, classes, feat=8, lambda_c=0.1, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, feat))
        self.head = nn.Linear(feat, classes)
        self.centers = nn.Parameter(torch.randn(classes, feat))

    def forward(self, x):
        z = self.backbone(x)
        return z, self.head(z)

    def center_loss(self, z, y):
        return 0.5 * (z - self.centers[y]).pow(2).sum(1).mean()

    def training_step(self, batch, _):
        x, y = batch
        z, logits = self(x)
        ce = F.cross_entropy(logits, y)
        center = self.center_loss(z, y)
        self.log_dict({"train_ce": ce, "train_center": center}, on_step=False, on_epoch=True)
        return ce + self.hparams.lambda_c * center

    def validation_step(self, batch, _):
        x, y = batch
        z, logits = self(x)
        self.log_dict({"val_acc": (logits.argmax(1) == y).float().mean(), "val_center": self.center_loss(z, y)})

    def configure_optimizers(self):
        groups = [{"params": self.backbone.parameters()}, {"params": self.head.parameters(), "lr": 5e-3}]
        return torch.optim.Adam(groups, lr=self.hparams.lr)


means = torch.randn(5, 20)


def split(n):
    y = torch.randint(5, (n,))
    return TensorDataset(means[y] + 1.0 * torch.randn(n, 20), y)


model = CenterLossNet(20, 5)
start = model.centers.detach().clone()
trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(model, DataLoader(split(1500), batch_size=64, shuffle=True), DataLoader(split(500), batch_size=250))
m = {k: v.item() for k, v in trainer.callback_metrics.items()}
print(f"train ce {m['train_ce']:.3f} center {m['train_center']:.3f}")
print(f"validation accuracy {m['val_acc']:.3f} center loss {m['val_center']:.3f}")
