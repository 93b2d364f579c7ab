"""Mean teacher for semi-supervised two-moons: few labels, an averaged teacher, consistency on the rest."""

import logging
import math
import warnings

import lightning
import torch
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(0, verbose=False)


def moons(n):
    label = torch.randint(0, 2, (n,))
    angle = math.pi * torch.rand(n)
    x = torch.where(label == 0, angle.cos(), 1 - angle.cos())
    y = torch.where(label == 0, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], dim=1) + 0.1 * torch.randn(n, 2), label


class MeanTeacher(lightning.LightningModule):
    def __init__(self, ramp_up=60):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.teacher = AveragedModel(self.student, multi_avg_fn=get_ema_multi_avg_fn(0.97))
        self.teacher.requires_grad_(False)
        self.ramp_up = ramp_up

    def training_step(self, batch, batch_idx):
        x, y, labelled = batch
        logits = self.student(x + 0.05 * torch.randn_like(x))
        with torch.no_grad():
            goal = self.teacher(x + 0.05 * torch.randn_like(x)).softmax(1)
        supervised = functional.cross_entropy(logits[labelled], y[labelled]) if labelled.any() else logits.sum() * 0
        consistency = (logits.softmax(1) - goal).pow(2).sum(1).mean()
        weight = 3.0 * min(1.0, self.global_step / self.ramp_up)
        return supervised + weight * consistency

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.teacher.update_parameters(self.student)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("teacher_acc", (self.teacher(x).argmax(1) == y).float().mean())
        self.log("student_acc", (self.student(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters(), lr=1e-2)


x, y = moons(1200)
labelled = torch.zeros(1200, dtype=torch.bool)
labelled[:60] = True
train = DataLoader(TensorDataset(x, y, labelled), batch_size=120, shuffle=True)
val = DataLoader(TensorDataset(*moons(500)), batch_size=500)
model = MeanTeacher()
trainer = lightning.Trainer(
    max_epochs=15,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train)
metrics = trainer.validate(model, val, verbose=False)[0]
print(f"teacher {metrics['teacher_acc']:.3f}  student {metrics['student_acc']:.3f}")
