"""Heteroscedastic regression with Gaussian NLL; the loss may well be negative."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)

x = 4 * torch.rand(2500, 1) - 2
sigma = 0.02 + 0.08 * (x + 2)
y = torch.sin(2 * x) + sigma * torch.randn_like(x)
train = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=80, shuffle=True)
test = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=180)  # a short last batch


class MeanVariance(L.LightningModule):
    def __init__(self, warmup_epochs=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.mean, self.raw = nn.Linear(64, 1), nn.Linear(64, 1)
        self.nll = nn.GaussianNLLLoss(eps=1e-6)
        self.warmup_epochs = warmup_epochs
        self.nll_sum = self.inside = self.rows = 0.0

    def forward(self, xb):
        h = self.body(xb)
        return self.mean(h), self.raw(h).exp()

    def training_step(self, batch, _):
        xb, yb = batch
        mean, var = self(xb)
        if self.current_epoch < self.warmup_epochs:
            # the mean first; the variance head waits
            var = torch.ones_like(var)
        return self.nll(mean, yb, var)

    def test_step(self, batch, _):
        xb, yb = batch
        mean, var = self(xb)
        self.nll_sum += self.nll(mean, yb, var).item() * len(xb)
        self.inside += ((yb - mean).abs() < 1.645 * var.sqrt()).float().sum().item()
        self.rows += len(xb)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


model = MeanVariance()
trainer = L.Trainer(
    max_epochs=20,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train)
trainer.test(model, test, verbose=False)
best = (sigma[2000:].log() + 0.5 * ((y - torch.sin(2 * x))[2000:] / sigma[2000:]) ** 2).mean()
print(
    f"test nll {model.nll_sum / model.rows:.4f}  true model {best.item():.4f}  "
    f"90% interval covers {model.inside / model.rows:.3f}"
)
