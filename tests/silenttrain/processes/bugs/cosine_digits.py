import math

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Digits(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        d = load_digits()
        x = torch.tensor(d.data, dtype=torch.float32) / 16
        y = torch.tensor(d.target)
        self.train = TensorDataset(x[:1536], y[:1536])
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)


class Net(L.LightningModule):
    def __init__(self, lr=0.3, warmup=5):
        super().__init__()
        self.lr, self.warmup = lr, warmup
        self.body = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.body(x), y)
        self.log("loss", loss, on_epoch=True, on_step=False, sync_dist=True)
        return loss

    def on_train_epoch_end(self):
        lr = self.trainer.optimizers[0].param_groups[0]["lr"]
        self.print(f"epoch {self.current_epoch}: loss {self.trainer.callback_metrics['loss']:.4f} lr {lr:.5f}")

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.lr)
        dm = self.trainer.datamodule
        total = self.trainer.max_epochs * math.ceil(len(dm.train) / dm.batch_size)

        def factor(step):
            if step < self.warmup:
                return (step + 1) / self.warmup
            t = min(1.0, (step - self.warmup) / max(1, total - self.warmup))
            return 0.5 * (1 + math.cos(math.pi * t))

        sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


def main():
    L.seed_everything(3, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=4,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Net(), datamodule=Digits())


if __name__ == "__main__":
    main()
