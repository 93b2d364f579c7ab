"""Stochastic weight averaging by hand in Lightning, with a late start and fresh norm statistics."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(7, verbose=False)

x = torch.randn(2000, 10)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
noisy = torch.where(torch.rand(2000) < 0.1, 1 - y, y)
train_ds = TensorDataset(x[:1500], noisy[:1500])
test_ds = TensorDataset(x[1500:], y[1500:])


class LitNet(L.LightningModule):
    def __init__(self, swa_start=5):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(10, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 2),
        )
        self.swa = AveragedModel(self.net)
        self.swa_start = swa_start
        self.scores = {"last": [], "averaged": []}

    def training_step(self, batch, _):
        xb, yb = batch
        return F.cross_entropy(self.net(xb), yb)

    def on_train_epoch_end(self):
        # one snapshot an epoch; the average ignores the early epochs altogether
        if self.current_epoch >= self.swa_start:
            self.swa.update_parameters(self.net)

    def on_train_end(self):
        update_bn(((xb,) for xb, _ in self.trainer.train_dataloader), self.swa)

    def test_step(self, batch, _):
        xb, yb = batch
        for name, net in (("last", self.net), ("averaged", self.swa)):
            self.scores[name].append((net(xb).argmax(1) == yb).float())

    def configure_optimizers(self):
        return torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)


model = LitNet()
trainer = L.Trainer(
    max_epochs=15,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(train_ds, batch_size=100, shuffle=True))
trainer.test(model, DataLoader(test_ds, batch_size=125), verbose=False)
for name, hits in model.scores.items():
    print(f"{name:9s} accuracy {torch.cat(hits).mean().item():.3f}")
