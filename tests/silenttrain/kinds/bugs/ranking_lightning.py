"""Learn to rank hotels from what guests chose between a sponsored hotel and an ordinary one."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(6, verbose=False)
FEATURES = 10


def utility(x):
    return 1.5 * x[:, 0] - x[:, 1] + 0.8 * x[:, 2] * x[:, 3] - 0.5 * x[:, 4].abs()


def choices(n):
    first, second = torch.randn(n, FEATURES), torch.randn(n, FEATURES)
    first[:, 9], second[:, 9] = 1.0, 0.0
    chosen = (utility(first) + 0.4 * torch.randn(n) > utility(second) + 0.4 * torch.randn(n)).float()
    return TensorDataset(first, second, chosen)


class Ranker(lightning.LightningModule):
    def __init__(self, margin=0.5):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.criterion = nn.MarginRankingLoss(margin=margin)

    def forward(self, x):
        return self.scorer(x).squeeze(1)

    def training_step(self, batch, batch_idx):
        first, second, chosen = batch
        loss = self.criterion(self(first), self(second), chosen)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        first, second, chosen = batch
        better = (self(first) > self(second)).float()
        self.log("pair_accuracy", (better == chosen).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


model = Ranker()
trainer = lightning.Trainer(
    max_epochs=12,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(choices(1200), batch_size=80, shuffle=True))
result = trainer.validate(model, DataLoader(choices(600), batch_size=300), verbose=False)[0]
with torch.no_grad():
    hotels = torch.randn(500, FEATURES)
    hotels[:, 9] = (torch.rand(500) < 0.5).float()
    rank = torch.stack([model(hotels), utility(hotels)]).argsort(dim=1).argsort(dim=1).float()
print(f"pair accuracy {result['pair_accuracy']:.3f}, rank correlation {torch.corrcoef(rank)[0, 1]:.3f}")
