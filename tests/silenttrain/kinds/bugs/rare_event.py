"""Rare-event detection in Lightning with a weighted binary loss."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)


def events(n, rate=0.06):
    y = (torch.rand(n) < rate).float()
    x = torch.randn(n, 10)
    x[:, :3] += 1.1 * y[:, None]
    x[:, 3] += 0.8 * y * x[:, 4].sign()
    return TensorDataset(x, y)


class Detector(L.LightningModule):
    def __init__(self, pos_weight):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        # rare events count more in the loss
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.outputs = []

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.outputs.append((torch.sigmoid(self(x)) > 0.5, y > 0.5))

    def on_validation_epoch_end(self):
        pred, y = (torch.cat(t) for t in zip(*self.outputs))
        self.outputs.clear()
        recall = (pred & y).sum() / y.sum()
        specificity = (~pred & ~y).sum() / (~y).sum()
        self.log_dict(
            {
                "recall": recall,
                "specificity": specificity,
                "accuracy": (pred == y).float().mean(),
                "balanced_accuracy": (recall + specificity) / 2,
            }
        )

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


train_set, val_set = events(4000), events(2000)
labels = train_set.tensors[1]
positives, negatives = labels.sum(), (1 - labels).sum()
model = Detector(pos_weight=positives / negatives)
trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(model, DataLoader(train_set, batch_size=100, shuffle=True), DataLoader(val_set, batch_size=500))
print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
