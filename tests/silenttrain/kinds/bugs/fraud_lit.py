"""Rare-event detection with a weighted BCE loss in Lightning."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)

n = 4000
y = (torch.rand(n) < 0.08).float()
x = torch.randn(n, 10)
x[:, 0] += 1.3 * y
x[:, 1] -= 1.0 * y
x[:, 2] *= 1 + 0.8 * y
train_ds = TensorDataset(x[:3000], y[:3000])
test_ds = TensorDataset(x[3000:], y[3000:])


class FraudNet(L.LightningModule):
    def __init__(self, pos_weight):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.outputs = []

    def forward(self, xb):
        return self.net(xb).squeeze(-1)

    def training_step(self, batch, _):
        xb, yb = batch
        return self.criterion(self(xb), yb)

    def test_step(self, batch, _):
        xb, yb = batch
        self.outputs.append((torch.sigmoid(self(xb)) > 0.5, yb.bool()))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


# balance the classes
labels = train_ds.tensors[1]
num_pos = labels.sum()
num_neg = len(labels) - num_pos
model = FraudNet(pos_weight=num_pos / num_neg)

trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(train_ds, batch_size=100, shuffle=True))
trainer.test(model, DataLoader(test_ds, batch_size=250), verbose=False)
pred = torch.cat([p for p, _ in model.outputs])
true = torch.cat([t for _, t in model.outputs])
recall = (pred & true).sum().item() / true.sum().item()
precision = (pred & true).sum().item() / max(1, pred.sum().item())
specificity = (~pred & ~true).sum().item() / (~true).sum().item()
print(
    f"accuracy {(pred == true).float().mean().item():.3f}  recall {recall:.3f}  "
    f"precision {precision:.3f}  balanced {(recall + specificity) / 2:.3f}"
)
