"""Two-tower matching of candidates and vacancies (Lightning)."""

import logging
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", message=".*LeafSpec.*")
SKILLS, POOL = 40, 50


def make_pairs(n, seed):
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(77).normal(size=(SKILLS, SKILLS)) / SKILLS**0.5
    cand = rng.normal(size=(n, SKILLS))
    vac = np.tanh(cand @ mix) + 0.45 * rng.normal(size=(n, SKILLS))
    return TensorDataset(torch.tensor(cand, dtype=torch.float32), torch.tensor(vac, dtype=torch.float32))


def tower(dim):
    return nn.Sequential(nn.Linear(SKILLS, 64), nn.ReLU(), nn.Linear(64, dim))


class Matcher(L.LightningModule):
    def __init__(self, dim=32, temperature=0.1):
        super().__init__()
        self.cand, self.vac = tower(dim), tower(dim)
        self.temperature = temperature

    def scores(self, cand, vac):
        a = nn.functional.normalize(self.cand(cand), dim=-1)
        b = nn.functional.normalize(self.vac(vac), dim=-1)
        return a @ b.T / self.temperature

    def training_step(self, batch, _):
        s = self.scores(*batch)
        target = torch.arange(len(s))
        loss = 0.5 * (nn.functional.cross_entropy(s, target) + nn.functional.cross_entropy(s.T, target))
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def on_validation_epoch_start(self):
        self.ranks = []

    def validation_step(self, batch, _):
        s = self.scores(*batch)
        order = s.argsort(dim=1)
        own = torch.arange(len(s)).unsqueeze(1)
        self.ranks.append((order == own).int().argmax(dim=1) + 1)

    def on_validation_epoch_end(self):
        rank = torch.cat(self.ranks).float()
        self.log("val_mrr", (1 / rank).mean())
        self.log("val_hit5", (rank <= 5).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def main():
    L.seed_everything(9, verbose=False)
    train = DataLoader(make_pairs(3200, 1), batch_size=64, shuffle=True, drop_last=True)
    valid = DataLoader(make_pairs(600, 2), batch_size=POOL)
    model = Matcher()
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        devices=1,
        logger=False,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, train, valid)
    for name in ("train_loss", "val_mrr", "val_hit5"):
        print(f"{name}: {float(trainer.callback_metrics[name]):.4f}")


if __name__ == "__main__":
    main()
