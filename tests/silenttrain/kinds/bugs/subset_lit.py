"""Train on a random subset of the records and report accuracy on a held-out subset."""

import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)

n = 1000
x = torch.randn(n, 30)
clean = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
y = torch.where(torch.rand(n) < 0.2, 1 - clean, clean)
dataset = TensorDataset(x, y)

rng = np.random.default_rng(42)
train_indices = rng.choice(n, size=700, replace=False)
test_indices = rng.choice(n, size=300, replace=False)
train_loader = DataLoader(Subset(dataset, train_indices.tolist()), batch_size=50, shuffle=True)
test_loader = DataLoader(Subset(dataset, test_indices.tolist()), batch_size=100)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
        self.hits = self.rows = 0
        self.losses = []

    def training_step(self, batch, _):
        xb, yb = batch
        loss = F.cross_entropy(self.body(xb), yb)
        self.losses.append(loss.item())
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}  loss {np.mean(self.losses):.4f}")
        self.losses.clear()

    def test_step(self, batch, _):
        xb, yb = batch
        self.hits += (self.body(xb).argmax(1) == yb).sum().item()
        self.rows += len(yb)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


model = Net()
trainer = L.Trainer(
    max_epochs=20,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train_loader)
trainer.test(model, test_loader, verbose=False)
print(f"test accuracy {model.hits / model.rows:.3f} on {model.rows} rows")
