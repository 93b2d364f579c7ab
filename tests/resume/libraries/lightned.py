# needs lightning
"""Lightning with ModelCheckpoint, which goes on from the last one."""

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))

    def training_step(self, batch, number):
        return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


seed_everything(3)
features = torch.randn(48, 6)
loader = DataLoader(TensorDataset(features, (features[:, 0] > 0).long()), batch_size=8)
saving = ModelCheckpoint("out", every_n_epochs=1, save_last=True)
quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = Trainer(max_epochs=4, accelerator="cpu", callbacks=[saving], **quiet)
trainer.fit(Classifier(), loader, ckpt_path="last")
