"""Train a soil classifier with Lightning, take the best checkpoint and export its network alone."""

import os

import lightning as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build_net():
    return nn.Sequential(nn.Linear(9, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 5))


class SoilModule(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = build_net()

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self.net(x).argmax(-1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=8e-3)


def soils(n, seed):
    gen = torch.Generator().manual_seed(seed)
    centres = torch.randn(5, 9, generator=torch.Generator().manual_seed(8))
    y = torch.randint(0, 5, (n,), generator=gen)
    return TensorDataset(centres[y] + 1.2 * torch.randn(n, 9, generator=gen), y)


def main():
    pl.seed_everything(231, verbose=False)
    val_data = soils(240, 2)
    best = ModelCheckpoint(dirpath="out/ckpt", monitor="val_acc", mode="max", save_top_k=1, save_last=True)
    trainer = pl.Trainer(
        max_epochs=10,
        accelerator="cpu",
        logger=False,
        callbacks=[best],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        SoilModule(), DataLoader(soils(320, 1), batch_size=32, shuffle=True), DataLoader(val_data, batch_size=240)
    )
    print("best:", os.path.basename(best.best_model_path), f"val acc {best.best_model_score.item():.3f}")
    print(f"last: val acc {trainer.callback_metrics['val_acc'].item():.3f}")

    state = torch.load(best.best_model_path, weights_only=False)["state_dict"]
    net = build_net()
    net.load_state_dict({k.removeprefix("net."): v for k, v in state.items() if k.startswith("net.")})
    net.eval()
    x, y = val_data.tensors
    with torch.no_grad():
        print(f"exported net: val acc {(net(x).argmax(-1) == y).float().mean().item():.3f}")
    torch.save(net.state_dict(), "out/soil_net.pt")


if __name__ == "__main__":
    main()
