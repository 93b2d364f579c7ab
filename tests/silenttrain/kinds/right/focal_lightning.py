"""Focal loss written by hand for rare defects on a production line."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(8, verbose=False)


def parts(n):
    x = torch.randn(n, 14)
    score = x[:, 0] + x[:, 1] + 0.7 * x[:, 2] * x[:, 3] + 0.3 * torch.randn(n)
    return TensorDataset(x, (score > 2.4).float())


def focal_loss(logit, target, gamma=2.0, alpha=0.75):
    ce = functional.binary_cross_entropy_with_logits(logit, target, reduction="none")
    p = torch.sigmoid(logit)
    p_t = p * target + (1 - p) * (1 - target)
    alpha_t = alpha * target + (1 - alpha) * (1 - target)
    return (alpha_t * (1 - p_t).pow(gamma) * ce).mean()


class DefectNet(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
        self.kept = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return focal_loss(self.net(x).squeeze(1), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.kept.append((self.net(x).squeeze(1), y))

    def on_validation_epoch_end(self):
        logit, y = (torch.cat(c) for c in zip(*self.kept, strict=True))
        self.kept.clear()
        guess = (logit > 0).float()
        hit = (guess * y).sum()
        self.log("precision", hit / guess.sum().clamp(min=1))
        self.log("recall", hit / y.sum())
        order = logit.argsort(descending=True)
        precision_at = y[order].cumsum(0) / torch.arange(1, len(y) + 1)
        self.log("average_precision", (precision_at * y[order]).sum() / y.sum())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


trainer = lightning.Trainer(
    max_epochs=12,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
model = DefectNet()
trainer.fit(model, DataLoader(parts(2000), batch_size=125, shuffle=True))
scores = trainer.validate(model, DataLoader(parts(1100), batch_size=200), verbose=False)[0]
print(", ".join(f"{name} {value:.3f}" for name, value in scores.items()))
