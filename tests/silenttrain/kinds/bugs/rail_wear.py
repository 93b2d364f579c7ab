"""Grades rail wear from axle-box acceleration features (Lightning)."""

import logging

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
GRADES = 4


def make_sections(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(GRADES, size=n, p=[0.4, 0.3, 0.2, 0.1])
    centre = np.random.default_rng(0).normal(size=(GRADES, 2, 12))
    x = 0.9 * centre[y, rng.integers(2, size=n)] + 0.8 * rng.normal(size=(n, 12))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(y))


class WearModel(L.LightningModule):
    def __init__(self, lr=4e-4):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, GRADES))
        self.hits = torch.zeros(GRADES)
        self.support = torch.zeros(GRADES)

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        pred = self.net(x).argmax(1)
        for k in range(GRADES):
            self.hits[k] += ((pred == k) & (y == k)).sum()
            self.support[k] += (y == k).sum()

    def on_validation_epoch_end(self):
        recall = self.hits / self.support.clamp(min=1)
        self.log("val_acc", self.hits.sum() / self.support.sum())
        self.log("val_balanced_acc", recall.mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(6, verbose=False)
    train = DataLoader(make_sections(1600, 1), batch_size=64, shuffle=True)
    valid = DataLoader(make_sections(700, 2), batch_size=128)
    model = WearModel()
    trainer = L.Trainer(
        max_epochs=12,
        accelerator="cpu",
        devices=1,
        logger=False,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, train, valid)
    print("after the last epoch:")
    for name in ("val_acc", "val_balanced_acc"):
        print(f"  {name} {float(trainer.callback_metrics[name]):.4f}")


if __name__ == "__main__":
    main()
