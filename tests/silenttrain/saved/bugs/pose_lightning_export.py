"""Train a keypoint regressor as a LightningModule and export the bare network from its checkpoint."""

import os

import lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build_network():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 48),
        nn.ReLU(),
        nn.Linear(48, 2),
    )


class KeypointModule(pl.LightningModule):
    def __init__(self, network, lr=2e-3):
        super().__init__()
        self.network = network
        self.lr = lr
        self.history = []

    def forward(self, x):
        return self.network(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.smooth_l1_loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        self.history.append(self.trainer.callback_metrics["train_loss"].item())

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mae", (self(x) - y).abs().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def keypoints(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.rand(n, 2, generator=gen) * 2 - 1
    grid = torch.linspace(-1, 1, 16)
    dist = (grid[None, :, None] - y[:, 0, None, None]) ** 2 + (grid[None, None, :] - y[:, 1, None, None]) ** 2
    images = torch.exp(-dist / 0.05) + 0.15 * torch.randn(n, 16, 16, generator=gen)
    return TensorDataset(images.unsqueeze(1), y)


def main():
    pl.seed_everything(101, verbose=False)
    train = DataLoader(keypoints(512, 1), batch_size=32, shuffle=True)
    val = DataLoader(keypoints(128, 2), batch_size=128)
    module = KeypointModule(build_network())
    trainer = pl.Trainer(
        max_epochs=6,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, train, val)
    print("train loss per epoch:", [round(v, 4) for v in module.history])
    print("val mae:", round(trainer.validate(module, val, verbose=False)[0]["val_mae"], 4))
    os.makedirs("out", exist_ok=True)
    trainer.save_checkpoint("out/keypoints.ckpt")

    checkpoint = torch.load("out/keypoints.ckpt", weights_only=False)
    network = build_network()
    network.load_state_dict(checkpoint["state_dict"], strict=False)
    torch.save(network.state_dict(), "out/keypoints_network.pt")
    torch.jit.trace(network.eval(), torch.zeros(1, 1, 16, 16)).save("out/keypoints.ts")


if __name__ == "__main__":
    main()
