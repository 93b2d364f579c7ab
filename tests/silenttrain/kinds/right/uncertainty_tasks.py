"""Multi-task regression with learned homoscedastic uncertainty (Kendall et al.) in Lightning."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)
NOISE = torch.tensor([0.1, 0.3, 1.0])


class MultiTask(L.LightningModule):
    def __init__(self, dim=6, tasks=3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(dim, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh())
        self.heads = nn.ModuleList(nn.Linear(32, 1) for _ in range(tasks))
        self.log_var = nn.Parameter(torch.zeros(tasks))

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([head(h) for head in self.heads], 1)

    def training_step(self, batch, _):
        x, y = batch
        per_task = (self(x) - y).pow(2).mean(0)
        # the sum falls below zero as soon as the first tasks are well fitted
        loss = 0.5 * (per_task * (-self.log_var).exp() + self.log_var).sum()
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        for i, v in enumerate((self(x) - y).pow(2).mean(0)):
            self.log(f"val_mse_{i}", v)

    def configure_optimizers(self):
        net = [p for n, p in self.named_parameters() if n != "log_var"]
        return torch.optim.Adam([{"params": net}, {"params": [self.log_var], "lr": 2e-2}], lr=3e-3)


torch.manual_seed(0)


def split(n):
    x = torch.randn(n, 6)
    clean = torch.stack([torch.sin(x[:, 0]), x[:, 1] * 0.7 + x[:, 2].tanh(), x[:, 3] - x[:, 4]], 1)
    return TensorDataset(x, clean + NOISE * torch.randn(n, 3))


model = MultiTask()
trainer = L.Trainer(
    max_epochs=20,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(model, DataLoader(split(2000), batch_size=64, shuffle=True), DataLoader(split(500), batch_size=500))
m = trainer.callback_metrics
print(f"training objective {m['loss'].item():.3f}")
print("learned sigma", [round(v, 3) for v in (0.5 * model.log_var).exp().tolist()], "true", NOISE.tolist())
print("validation mse", [round(m[f"val_mse_{i}"].item(), 3) for i in range(3)])
