import lightning as L
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dfn
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class WideBatchNorm(nn.BatchNorm1d):
    """BatchNorm1d whose batch is the rows of all workers (the stock SyncBatchNorm wants a GPU)."""

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        packed = torch.cat([x.new_full((1,), len(x)), x.sum(0), x.pow(2).sum(0)])
        packed = dfn.all_reduce(packed)
        n, c = packed[0], self.num_features
        mean = packed[1 : 1 + c] / n
        var = packed[1 + c :] / n - mean.pow(2)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * n / (n - 1), self.momentum)
            self.num_batches_tracked += 1
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), WideBatchNorm(32), nn.ReLU(), nn.Linear(32, 3))
        self.sums = torch.zeros(2)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.sums += torch.tensor([loss.item() * len(y), len(y)])
        return loss

    def on_train_epoch_end(self):
        total = self.sums.clone()
        dist.all_reduce(total)
        self.sums.zero_()
        if self.global_rank == 0:
            print(f"epoch {self.current_epoch} loss {total[0] / total[1]:.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    def train_dataloader(self):
        g = torch.Generator().manual_seed(8)
        x = torch.randn(640, 12, generator=g)
        y = (x @ torch.randn(12, 3, generator=g)).argmax(1)
        ds = TensorDataset(x * 4 + 1, y)
        sampler = DistributedSampler(ds, self.trainer.world_size, self.global_rank, shuffle=True, seed=2)
        return DataLoader(ds, batch_size=8, sampler=sampler)


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        use_distributed_sampler=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(Net())
