"""Train a wine cultivar classifier with Lightning and export the best checkpoint by validation accuracy."""

import os

import lightning as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class WineClassifier(pl.LightningModule):
    def __init__(self, features=13, classes=4, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(features, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, classes))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", nn.functional.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(-1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def wines(n, seed):
    gen = torch.Generator().manual_seed(seed)
    centres = torch.randn(4, 13, generator=torch.Generator().manual_seed(0))
    y = torch.randint(0, 4, (n,), generator=gen)
    return TensorDataset(centres[y] + 1.1 * torch.randn(n, 13, generator=gen), y)


def main():
    pl.seed_everything(100, verbose=False)
    train = DataLoader(wines(320, 1), batch_size=32, shuffle=True)
    val = DataLoader(wines(200, 2), batch_size=200)
    model = WineClassifier()
    checkpoint = ModelCheckpoint(dirpath="out/checkpoints", filename="wine-{epoch}", monitor="val_acc", save_top_k=1)
    trainer = pl.Trainer(
        max_epochs=12,
        accelerator="cpu",
        logger=False,
        callbacks=[checkpoint],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, train, val)
    print("last epoch:", {k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})

    best = WineClassifier.load_from_checkpoint(checkpoint.best_model_path, weights_only=False)
    os.makedirs("out", exist_ok=True)
    torch.save(best.net.state_dict(), "out/wine_best.pt")
    print("exported", os.path.basename(checkpoint.best_model_path))


if __name__ == "__main__":
    main()
