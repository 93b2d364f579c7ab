"""Beat classification on synthetic single-lead ECG windows (Lightning)."""

import logging
import math

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
BEATS, WINDOW = 4, 64


def make_beats(n, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(-1, 1, WINDOW)
    y = rng.integers(BEATS, size=n)
    shift = rng.uniform(-0.2, 0.2, size=(n, 1))
    qrs = np.exp(-(((t - shift) / (0.05 + 0.03 * (y % 2)[:, None])) ** 2))
    twave = 0.35 * np.where(y >= 2, -1, 1)[:, None] * np.exp(-(((t - shift - 0.5) / 0.15) ** 2))
    x = qrs + twave + 0.25 * rng.normal(size=(n, WINDOW)) + rng.normal(0, 0.3, size=(n, 1))
    return TensorDataset(torch.tensor(x[:, None], dtype=torch.float32), torch.from_numpy(y))


class BeatClassifier(L.LightningModule):
    def __init__(self, max_lr=0.02):
        super().__init__()
        self.max_lr = max_lr
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(16, 24, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(24 * WINDOW // 4, BEATS),
        )

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        self.log("val_loss", nn.functional.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.max_lr, momentum=0.9)
        total = int(self.trainer.estimated_stepping_batches)
        warmup = max(1, total // 10)

        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler}}


def main():
    L.seed_everything(3, verbose=False)
    train = DataLoader(make_beats(1600, 1), batch_size=64, shuffle=True)
    valid = DataLoader(make_beats(800, 2), batch_size=200)
    model = BeatClassifier()
    trainer = L.Trainer(
        max_epochs=10,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, train, valid)
    for name in ("train_loss", "val_loss", "val_acc"):
        print(f"{name}: {float(trainer.callback_metrics[name]):.4f}")


if __name__ == "__main__":
    main()
