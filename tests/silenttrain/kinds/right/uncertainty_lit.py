"""Multi-task regression weighted by learned homoscedastic uncertainty."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(5, verbose=False)

x = torch.randn(2400, 8)
a = torch.sin(x[:, :1]) + 0.05 * torch.randn(2400, 1)
b = x[:, 1:2] * x[:, 2:3] + 0.8 * torch.randn(2400, 1)
has_b = torch.rand(2400, 1) < 0.3
b = torch.where(has_b, b, torch.zeros_like(b))
ds = TensorDataset(x, a, b, has_b)
train, test = torch.utils.data.Subset(ds, range(2000)), torch.utils.data.Subset(ds, range(2000, 2400))


class TwoTasks(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head_a, self.head_b = nn.Linear(64, 1), nn.Linear(64, 1)
        self.log_var = nn.Parameter(torch.zeros(2))
        self.sums = torch.zeros(3)

    def forward(self, xb):
        h = self.trunk(xb)
        return self.head_a(h), self.head_b(h)

    def training_step(self, batch, _):
        xb, ya, yb, mask = batch
        pa, pb = self(xb)
        loss_a = F.mse_loss(pa, ya)
        # rows without the second label do not take part in its loss
        loss_b = F.mse_loss(pb[mask], yb[mask]) if mask.any() else pb.sum() * 0.0
        losses = torch.stack([loss_a, loss_b])
        return 0.5 * ((-self.log_var).exp() * losses + self.log_var).sum()

    def test_step(self, batch, _):
        xb, ya, yb, mask = batch
        pa, pb = self(xb)
        self.sums += torch.stack([(pa - ya).pow(2).mean() * len(xb), (pb - yb)[mask].pow(2).sum(), mask.sum().float()])

    def configure_optimizers(self):
        return torch.optim.Adam(
            [
                {"params": [p for n, p in self.named_parameters() if n != "log_var"], "lr": 3e-3},
                {"params": [self.log_var], "lr": 2e-2},
            ]
        )


model = TwoTasks()
trainer = L.Trainer(
    max_epochs=15,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(train, batch_size=100, shuffle=True))
trainer.test(model, DataLoader(test, batch_size=100), verbose=False)
print("learned noise std", [round(v, 3) for v in (0.5 * model.log_var).exp().tolist()])
print(f"test mse  a {model.sums[0].item() / 400:.4f}  b {(model.sums[1] / model.sums[2]).item():.4f}")
