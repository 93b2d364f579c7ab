"""Lightning regression of a skewed amount: trained on log1p, reported in the original unit."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)


class AmountModel(L.LightningModule):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 1))
        self.register_buffer("smear", torch.tensor(1.0))
        self.residuals = []

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def predict_amount(self, x):
        # Duan's smearing factor corrects the mean after the inverse of the log
        return self(x).exp() * self.smear - 1

    def training_step(self, batch, _):
        x, y = batch
        pred, target = self(x), torch.log1p(y)
        self.residuals.append((target - pred).detach())
        loss = F.mse_loss(pred, target)
        self.log("train_log_mse", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        self.smear.copy_(torch.cat(self.residuals).exp().mean())
        self.residuals.clear()

    def test_step(self, batch, _):
        x, y = batch  # y is in the original unit here
        pred = self.predict_amount(x)
        self.log_dict(
            {
                "test_mae": F.l1_loss(pred, y),
                "naive_mae": F.l1_loss(y.median().expand_as(y), y),
                "mean_pred": pred.mean(),
                "mean_true": y.mean(),
            }
        )

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def claims(n):
    x = torch.randn(n, 8)
    z = 0.6 * x[:, 0] + 0.4 * x[:, 1] - 0.3 * x[:, 2] + 0.3 * x[:, 3].abs()
    return TensorDataset(x, torch.expm1((4 + z + 0.4 * torch.randn(n)).clamp(min=0)))


model = AmountModel(8)
trainer = L.Trainer(
    max_epochs=14,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(claims(2000), batch_size=64, shuffle=True))
print(f"train mse of the logs {trainer.callback_metrics['train_log_mse'].item():.3f} (noise 0.16)")
result = trainer.test(model, DataLoader(claims(800), batch_size=800), verbose=False)[0]
print({k: round(v, 2) for k, v in result.items()})
