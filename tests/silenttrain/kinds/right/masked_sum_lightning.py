"""Lightning sequence tagging: unreduced losses, a mask for padding, and a corpus-level macro F1."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(0, verbose=False)
VOCAB, TAGS, PAD_TAG = 30, 3, -1


class Sentences(Dataset):
    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            ids = torch.randint(1, VOCAB, (int(torch.randint(4, 15, (1,))),))
            before = torch.cat([torch.tensor([0]), ids[:-1]])
            # rare tag 2: a multiple of five after an even token
            tags = torch.where((ids % 5 == 0) & (before % 2 == 0), 2, (ids > 15).long())
            self.rows.append((ids, tags))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    ids, tags = zip(*rows)
    pad = nn.utils.rnn.pad_sequence
    return pad(ids, batch_first=True, padding_value=0), pad(tags, batch_first=True, padding_value=PAD_TAG)


class Tagger(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 24, padding_idx=0)
        self.rnn = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, TAGS)
        self.confusion = torch.zeros(TAGS, TAGS)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])

    def training_step(self, batch, _):
        ids, tags = batch
        mask = tags != PAD_TAG
        # clamp keeps the index legal at padding, the mask removes those terms from the sum
        each = F.cross_entropy(self(ids).transpose(1, 2), tags.clamp(min=0), reduction="none")
        return (each * mask).sum() / mask.sum()

    def validation_step(self, batch, _):
        ids, tags = batch
        mask = tags != PAD_TAG
        pred = self(ids).argmax(-1)[mask]
        self.confusion += torch.bincount(tags[mask] * TAGS + pred, minlength=TAGS**2).view(TAGS, TAGS)

    def on_validation_epoch_end(self):
        c = self.confusion
        f1 = 2 * c.diag() / (c.sum(0) + c.sum(1)).clamp_min(1)
        self.log_dict({"macro_f1": f1.mean(), "rare_f1": f1[2], "accuracy": c.diag().sum() / c.sum()})
        self.confusion = torch.zeros(TAGS, TAGS)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=8e-3)


trainer = L.Trainer(
    max_epochs=4,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(
    Tagger(),
    DataLoader(Sentences(800), batch_size=32, shuffle=True, collate_fn=collate),
    DataLoader(Sentences(300), batch_size=100, collate_fn=collate),
)
print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
