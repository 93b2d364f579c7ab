"""BYOL-style pretraining in Lightning, judged by a linear probe."""

import copy
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)


def make_data(n, centers):
    y = torch.randint(len(centers), (n,))
    return centers[y] + 0.6 * torch.randn(n, centers.shape[1]), y


def augment(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.2 * torch.randn_like(x)


class BYOL(L.LightningModule):
    def __init__(self, dim=32, hidden=64, out=16, momentum=0.98):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out))
        self.predictor = nn.Sequential(
            nn.Linear(out, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out)
        )
        self.target_encoder = copy.deepcopy(self.encoder)
        self.momentum = momentum

    def similarity_loss(self, a, b):
        return 2 - 2 * F.cosine_similarity(self.predictor(self.encoder(a)), self.target_encoder(b), dim=-1).mean()

    def training_step(self, batch, batch_idx):
        (x,) = batch
        v1, v2 = augment(x), augment(x)
        loss = (self.similarity_loss(v1, v2) + self.similarity_loss(v2, v1)) / 2
        self.log("loss", loss, prog_bar=False)
        return loss

    def on_train_batch_end(self, outputs, batch, batch_idx):
        with torch.no_grad():
            for p, tp in zip(self.encoder.parameters(), self.target_encoder.parameters()):
                tp.lerp_(p, 1 - self.momentum)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3, weight_decay=1e-4)


centers = 0.6 * torch.randn(6, 32)
x_train, y_train = make_data(1500, centers)
x_test, y_test = make_data(600, centers)

model = BYOL()
trainer = L.Trainer(
    max_epochs=12,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(TensorDataset(x_train), batch_size=128, shuffle=True, drop_last=True))
print(f"pretraining loss {trainer.callback_metrics['loss'].item():.4f}")

model.eval()
with torch.no_grad():
    z_train, z_test = model.encoder(x_train), model.encoder(x_test)
probe = LogisticRegression(max_iter=500).fit(z_train.numpy(), y_train.numpy())
print(f"feature std {F.normalize(z_test, dim=-1).std(0).mean().item():.4f}")
print(f"probe accuracy {probe.score(z_test.numpy(), y_test.numpy()):.3f}")
