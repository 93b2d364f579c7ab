"""Lightning: every epoch works on a fresh random subset of a large pool."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(7, verbose=False)


class PoolData(L.LightningDataModule):
    def __init__(self, pool_size=6000, per_epoch=320, seed=7):
        super().__init__()
        self.per_epoch, self.seed = per_epoch, seed
        self.x, self.y = self.simulate(pool_size)
        self.val = TensorDataset(*self.simulate(1000))

    @staticmethod
    def simulate(n):
        x = torch.randn(n, 16)
        y = x[:, 0] * x[:, 1] + x[:, 2].sin() + 0.5 * x[:, 3:6].sum(1) + 0.5 * torch.randn(n)
        return x, y

    def train_dataloader(self):
        # a subset per epoch keeps the epochs short, over time the whole pool is used
        g = torch.Generator().manual_seed(self.seed)
        rows = torch.randperm(len(self.x), generator=g)[: self.per_epoch]
        return DataLoader(TensorDataset(self.x[rows], self.y[rows]), batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=500)


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_mse", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mse", F.mse_loss(self(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


model = Regressor()
trainer = L.Trainer(
    max_epochs=40,
    reload_dataloaders_every_n_epochs=1,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
    check_val_every_n_epoch=10,
)
trainer.fit(model, datamodule=PoolData())
m = trainer.callback_metrics
print(f"train mse {m['train_mse'].item():.3f} validation mse {m['val_mse'].item():.3f} (noise 0.25)")
