"""Mixup in Lightning: inputs and labels are blended with a permuted copy of the batch."""

import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(3, verbose=False)

centers = 0.7 * torch.randn(5, 20)
y = torch.randint(5, (1800,))
x = centers[y] + torch.randn(1800, 20)
y_noisy = torch.where(torch.rand(1800) < 0.1, torch.randint(5, (1800,)), y)
train = DataLoader(TensorDataset(x[:1400], y_noisy[:1400]), batch_size=100, shuffle=True, drop_last=True)
test = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=400)


class MixupNet(L.LightningModule):
    def __init__(self, alpha=0.4):
        super().__init__()
        self.alpha = alpha
        self.net = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 5))
        self.train_hits = []

    def training_step(self, batch, _):
        xb, yb = batch
        lam = float(np.random.beta(self.alpha, self.alpha))
        perm = torch.randperm(len(xb))
        logits = self.net(lam * xb + (1 - lam) * xb[perm])
        # accuracy on blended rows, low by nature
        hits = lam * (logits.argmax(1) == yb).float() + (1 - lam) * (logits.argmax(1) == yb[perm]).float()
        self.train_hits.append(hits.mean().item())
        return lam * F.cross_entropy(logits, yb) + (1 - lam) * F.cross_entropy(logits, yb[perm])

    def on_train_epoch_end(self):
        if self.current_epoch % 4 == 3:
            print(f"epoch {self.current_epoch}  mixed accuracy {np.mean(self.train_hits):.3f}")
        self.train_hits.clear()

    def test_step(self, batch, _):
        xb, yb = batch
        self.accuracy = (self.net(xb).argmax(1) == yb).float().mean().item()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


model = MixupNet()
trainer = L.Trainer(
    max_epochs=12,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train)
trainer.test(model, test, verbose=False)
print(f"test accuracy {model.accuracy:.3f}")
