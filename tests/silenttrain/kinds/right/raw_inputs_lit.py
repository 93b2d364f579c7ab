"""Raw tabular features into Lightning: a first batch norm does the scaling, embeddings the categories."""

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

n = 2000
numeric = torch.stack([50000 + 20000 * torch.randn(n), 0.02 * torch.rand(n), torch.randint(18, 90, (n,)).float()], 1)
region = torch.randint(1, 9, (n,))  # 0 is kept for regions never met
effect = torch.randn(9)
score = (numeric[:, 0] - 50000) / 20000 + 100 * (numeric[:, 1] - 0.01) + effect[region]
y = (score + 0.4 * torch.randn(n) > 0).float()
missing = torch.rand(n) < 0.1
numeric[missing, 2] = float("nan")
train_rows, test_rows = torch.arange(1500), torch.arange(1500, n)
# imputation with the median of the training rows, and a flag
median = numeric[train_rows, 2].nanmedian()
numeric = torch.cat([numeric.nan_to_num(nan=median.item()), missing.float()[:, None]], 1)


class Tabular(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.scale = nn.BatchNorm1d(4, affine=False, momentum=None)  # cumulative moments
        self.region = nn.Embedding(9, 4, padding_idx=0)
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
        self.correct, self.seen = 0, 0

    def forward(self, num, cat):
        if self.training:
            # some regions hidden in training so that the unknown slot means something
            cat = cat.masked_fill(torch.rand(cat.shape) < 0.05, 0)
        return self.net(torch.cat([self.scale(num), self.region(cat)], 1)).squeeze(1)

    def training_step(self, batch, _):
        num, cat, t = batch
        return F.binary_cross_entropy_with_logits(self(num, cat), t)

    def test_step(self, batch, _):
        num, cat, t = batch
        self.correct += ((self(num, cat) > 0) == (t > 0.5)).sum().item()
        self.seen += len(t)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


ds = TensorDataset(numeric, region, y)
train = DataLoader(torch.utils.data.Subset(ds, train_rows.tolist()), batch_size=75, shuffle=True)
test = DataLoader(torch.utils.data.Subset(ds, test_rows.tolist()), batch_size=1)
model = Tabular()
trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train)
trainer.test(model, test, verbose=False)
print("running means", [round(v, 3) for v in model.scale.running_mean.tolist()])
print(f"test accuracy {model.correct / model.seen:.3f}")
