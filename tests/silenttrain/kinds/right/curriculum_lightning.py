"""Lightning with a curriculum: epochs begin with the easy rows only; the hard ones come later."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)


class Curriculum(L.LightningDataModule):
    def __init__(self, n=2000, epochs=16):
        super().__init__()
        self.epochs = epochs
        self.train_set, distance = self.simulate(n)
        self.val_set, _ = self.simulate(800)
        self.easy_first = distance.argsort(descending=True)

    @staticmethod
    def simulate(n):
        x = torch.randn(n, 6)
        score = x[:, 0] + x[:, 1] * x[:, 2]
        return TensorDataset(x, (score > 0).long()), score.abs()  # far from the border is easy

    def train_dataloader(self):
        # half of the rows for four epochs, then more, all of them from the middle of the run on
        share = min(1.0, 0.5 + 0.5 * max(0, self.trainer.current_epoch - 3) / 4)
        rows = self.easy_first[: int(share * len(self.train_set))].tolist()
        return DataLoader(Subset(self.train_set, rows), batch_size=64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=400)


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.rows = []

    def on_train_epoch_start(self):
        self.rows.append(0)

    def training_step(self, batch, _):
        x, y = batch
        self.rows[-1] += len(x)
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_acc", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


data, model = Curriculum(), Classifier()
trainer = L.Trainer(
    max_epochs=data.epochs,
    reload_dataloaders_every_n_epochs=1,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(model, datamodule=data)
print("rows per epoch", model.rows)
print(f"validation accuracy {trainer.callback_metrics['val_acc'].item():.3f}")
