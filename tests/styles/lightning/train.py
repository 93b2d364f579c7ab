"""A classifier of points in a LightningModule, with validation after each epoch."""

import lightning
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

lightning.seed_everything(7)
EPOCHS = 2
ACCUMULATION = 1

points = torch.randn(240, 8)
labels = (points[:, 0] + points[:, 1] > 0).long() + (points[:, 2] > 0.5).long()
train_loader = DataLoader(TensorDataset(points[:192], labels[:192]), batch_size=16, shuffle=True)
validation_loader = DataLoader(TensorDataset(points[192:], labels[192:]), batch_size=16)
planned = EPOCHS * len(train_loader) // ACCUMULATION


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(32, 3)

    def forward(self, points):
        return self.head(self.encoder(points))

    def training_step(self, batch, batch_idx):
        points, labels = batch
        loss = cross_entropy(self(points), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        points, labels = batch
        logits = self(points)
        self.log("validation_loss", cross_entropy(logits, labels))
        self.log("accuracy", (logits.argmax(dim=1) == labels).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=planned)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


model = Classifier()
trainer = lightning.Trainer(
    max_epochs=EPOCHS,
    accumulate_grad_batches=ACCUMULATION,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train_loader, validation_loader)
print(trainer.callback_metrics)
