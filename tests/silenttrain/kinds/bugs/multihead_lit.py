"""Three property heads on a shared trunk, trained together with Lightning."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(1, verbose=False)
TASKS = {"colour": 4, "shape": 3, "size": 2}

x = torch.randn(2000, 14)
targets = torch.stack([(x @ torch.randn(14, c)).argmax(1) for c in TASKS.values()], 1)
train = DataLoader(TensorDataset(x[:1600], targets[:1600]), batch_size=80, shuffle=True)
test = DataLoader(TensorDataset(x[1600:], targets[1600:]), batch_size=200)


class MultiHead(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.heads = nn.ModuleDict({t: nn.Linear(32, c) for t, c in TASKS.items()})
        self.correct = {t: 0 for t in TASKS}
        self.seen = 0

    def forward(self, xb):
        h = self.trunk(xb)
        return {t: head(h) for t, head in self.heads.items()}

    def training_step(self, batch, _):
        xb, yb = batch
        out = self(xb)
        total_loss = 0.0
        for i, task in enumerate(TASKS):
            task_loss = F.cross_entropy(out[task], yb[:, i])
            self.log(f"train_{task}", task_loss)
            total_loss = task_loss
        return total_loss / len(TASKS)

    def test_step(self, batch, _):
        xb, yb = batch
        out = self(xb)
        for i, task in enumerate(TASKS):
            self.correct[task] += (out[task].argmax(1) == yb[:, i]).sum().item()
        self.seen += len(xb)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


model = MultiHead()
trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train)
trainer.test(model, test, verbose=False)
print("test accuracy  " + "  ".join(f"{t} {c / model.seen:.3f}" for t, c in model.correct.items()))
