import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def shapes(n, seed, noise):
    """Every shape is listed as a pair: a clean view followed by a degraded view."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(6, (n,), generator=g)
    proto = torch.randn(6, 32, generator=torch.Generator().manual_seed(0))
    base = proto[y] + 0.5 * torch.randn(n, 32, generator=g)
    degraded = base + noise * torch.randn(n, 32, generator=g)
    return TensorDataset(torch.stack([base, degraded], 1).flatten(0, 1), y.repeat_interleave(2))


class ShapeNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 6))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, idx):
        x, y = batch
        acc = (self(x).argmax(1) == y).float().mean()
        self.log("val_acc", acc, on_epoch=True, batch_size=len(y))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking and self.trainer.is_global_zero:
            print(
                "epoch",
                self.current_epoch,
                "val_acc",
                round(float(self.trainer.callback_metrics["val_acc"]), 4),
                flush=True,
            )

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=4,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        ShapeNet(),
        DataLoader(shapes(480, 1, 3.0), batch_size=32, shuffle=True),
        DataLoader(shapes(128, 2, 3.0), batch_size=32),
    )
