"""Mean teacher for semi-supervised classification; the teacher is what gets evaluated."""

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
L.seed_everything(0, verbose=False)

centers = 0.9 * torch.randn(4, 12)
y = torch.randint(4, (1600,))
x = 6.0 + 4.0 * (centers[y] + torch.randn(1600, 12))
labelled = torch.arange(1600) < 300
train = TensorDataset(x[:1200], y[:1200], labelled[:1200])
test = TensorDataset(x[1200:], y[1200:])


class MeanTeacher(L.LightningModule):
    def __init__(self, decay=0.98):
        super().__init__()
        self.decay = decay
        self.student = nn.Sequential(
            nn.Linear(12, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(64, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 4),
        )
        self.teacher = copy.deepcopy(self.student)
        self.teacher.requires_grad_(False)
        self.hits, self.count = [0, 0], 0

    def training_step(self, batch, _):
        self.teacher.eval()
        xb, yb, has_label = batch
        logits = self.student(xb + 0.3 * torch.randn_like(xb))
        with torch.no_grad():
            target = self.teacher(xb).softmax(-1)
        supervised = F.cross_entropy(logits[has_label], yb[has_label])
        consistency = F.mse_loss(logits.softmax(-1), target)
        ramp = min(1.0, self.global_step / 100)
        return supervised + 0.5 * ramp * consistency

    def on_train_batch_end(self, *args):
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), self.student.parameters()):
                t.mul_(self.decay).add_(s, alpha=1 - self.decay)

    def test_step(self, batch, _):
        xb, yb = batch
        self.hits[0] += (self.student(xb).argmax(1) == yb).sum().item()
        self.hits[1] += (self.teacher(xb).argmax(1) == yb).sum().item()
        self.count += len(yb)

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters(), lr=3e-3)


model = MeanTeacher()
trainer = L.Trainer(
    max_epochs=12,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(train, batch_size=100, shuffle=True))
trainer.test(model, DataLoader(test, batch_size=100), verbose=False)
print(f"student accuracy {model.hits[0] / model.count:.3f}  teacher accuracy {model.hits[1] / model.count:.3f}")
