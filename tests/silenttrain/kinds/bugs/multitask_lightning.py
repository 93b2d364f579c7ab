"""Predict the fault of a pump and its remaining life with one trunk and two heads."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(2, verbose=False)


def pumps(n):
    x = torch.randn(n, 16)
    w = torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    fault = (x @ w).argmax(1)
    life = 2 + x[:, :4].abs().sum(1) - x[:, 5] + 0.1 * torch.randn(n)
    return TensorDataset(x, fault, life)


class PumpNet(lightning.LightningModule):
    def __init__(self, life_weight=0.5):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.fault_head = nn.Linear(32, 3)
        self.life_head = nn.Linear(32, 1)
        self.life_weight = life_weight

    def forward(self, x):
        h = self.trunk(x)
        return self.fault_head(h), self.life_head(h).squeeze(1)

    def losses(self, batch):
        x, fault, life = batch
        fault_logits, life_hat = self(x)
        fault_loss = nn.functional.cross_entropy(fault_logits, fault)
        life_loss = self.life_weight * nn.functional.smooth_l1_loss(life_hat, life)
        return fault_loss, life_loss

    def training_step(self, batch, batch_idx):
        fault_loss, life_loss = self.losses(batch)
        loss = fault_loss
        self.log_dict({"train_fault": fault_loss, "train_life": life_loss})
        return loss

    def validation_step(self, batch, batch_idx):
        x, fault, life = batch
        fault_logits, life_hat = self(x)
        self.log("fault_acc", (fault_logits.argmax(1) == fault).float().mean())
        self.log("life_mae", (life_hat - life).abs().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-3)


train = DataLoader(pumps(1280), batch_size=128, shuffle=True)
val = DataLoader(pumps(512), batch_size=512)
model = PumpNet()
trainer = lightning.Trainer(
    max_epochs=15,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train)
scores = trainer.validate(model, val, verbose=False)[0]
print(f"fault accuracy {scores['fault_acc']:.3f}, mean error of the life {scores['life_mae']:.3f}")
