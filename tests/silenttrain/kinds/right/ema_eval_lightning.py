"""Lightning regression with an EMA copy that is used for validation only."""

import copy
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


class EmaRegressor(L.LightningModule):
    def __init__(self, decay=0.99, start=30):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))
        self.ema = copy.deepcopy(self.net).requires_grad_(False).eval()
        self.decay, self.start = decay, start

    def train(self, mode=True):
        super().train(mode)
        self.ema.eval()  # the average never runs in training mode
        return self

    def training_step(self, batch, _):
        x, y = batch
        return F.mse_loss(self.net(x).squeeze(-1), y)

    @torch.no_grad()
    def on_train_batch_end(self, *args):
        # averaging starts late; until then the copy stays as it was made
        if self.global_step < self.start:
            return
        if self.global_step == self.start:
            self.ema.load_state_dict(self.net.state_dict())
            return
        for e, p in zip(self.ema.parameters(), self.net.parameters()):
            e.lerp_(p, 1 - self.decay)
        for e, b in zip(self.ema.buffers(), self.net.buffers()):
            e.copy_(b)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_ema", F.mse_loss(self.ema(x).squeeze(-1), y))
        self.log("val_raw", F.mse_loss(self.net(x).squeeze(-1), y))

    def configure_optimizers(self):
        return torch.optim.SGD(self.net.parameters(), lr=0.08, momentum=0.9)


def data(n):
    x = torch.randn(n, 8)
    y = x[:, 0] * x[:, 1] + torch.sin(2 * x[:, 2]) + 0.4 * torch.randn(n)
    return TensorDataset(x, y)


model = EmaRegressor()
trainer = L.Trainer(
    max_epochs=15,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(
    model, DataLoader(data(2000), batch_size=64, shuffle=True, drop_last=True), DataLoader(data(500), batch_size=250)
)
m = trainer.callback_metrics
print(f"validation mse: ema {m['val_ema'].item():.3f}, raw {m['val_raw'].item():.3f} (noise floor 0.16)")
