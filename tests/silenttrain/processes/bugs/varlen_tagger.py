import math

import lightning.pytorch as pl
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Sentences(Dataset):
    def __init__(self, n=960, seed=4):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            k = int(torch.randint(3, 25, (), generator=g))
            w = torch.randint(1, 80, (k,), generator=g)
            prev = torch.cat([torch.zeros(1, dtype=torch.long), w[:-1]])
            self.items.append((w, torch.where(prev < 40, w % 5, w // 16)))
        self.lengths = [len(w) for w, _ in self.items]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class BucketBatches(Sampler):
    """Batches of similar length, shuffled every epoch."""

    def __init__(self, lengths, size, seed=0, rank=0, world=1):
        self.lengths, self.size, self.seed, self.rank, self.world = lengths, size, seed, rank, world
        self.epoch = 0

    def __len__(self):
        return math.ceil(len(self.lengths) / self.size) // self.world

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        self.epoch += 1
        jitter = torch.rand(len(self.lengths), generator=g).tolist()
        order = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i] + 2 * jitter[i])
        batches = [order[i : i + self.size] for i in range(0, len(order), self.size)]
        perm = torch.randperm(len(batches), generator=g).tolist()[: len(self) * self.world]
        for j in perm[self.rank :: self.world]:
            yield batches[j]


def pad(rows):
    w = nn.utils.rnn.pad_sequence([r[0] for r in rows], batch_first=True)
    t = nn.utils.rnn.pad_sequence([r[1] for r in rows], batch_first=True, padding_value=-1)
    return w, t


class Tagger(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(80, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 5)

    def training_step(self, batch, _):
        w, t = batch
        logits = self.out(self.rnn(self.emb(w))[0]).flatten(0, 1)
        nll = nn.functional.cross_entropy(logits, t.flatten(), ignore_index=-1, reduction="sum")
        tokens = self.trainer.strategy.reduce((t != -1).sum().float(), reduce_op="mean")
        loss = nll / tokens
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True, batch_size=1)
        return loss

    def on_train_epoch_end(self):
        self.print(
            f"epoch {self.current_epoch} loss {self.trainer.callback_metrics['loss']:.4f} updates {self.global_step}"
        )

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=6e-3)

    def train_dataloader(self):
        ds = Sentences()
        batches = BucketBatches(ds.lengths, 16, seed=3)
        return DataLoader(ds, batch_sampler=batches, collate_fn=pad)


pl.seed_everything(0, verbose=False)
trainer = pl.Trainer(
    accelerator="cpu",
    devices=2,
    strategy="ddp",
    max_steps=60,
    max_epochs=-1,
    logger=False,
    use_distributed_sampler=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Tagger())
