import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import Dataset, Subset
from transformers import Trainer, TrainingArguments, set_seed


class Flowers(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.species = torch.randint(5, (n,), generator=g)
        centres = torch.randn(5, 8, generator=torch.Generator().manual_seed(99))
        self.traits = centres[self.species] + 0.9 * torch.randn(n, 8, generator=g)

    def __len__(self):
        return len(self.species)

    def __getitem__(self, i):
        return {"traits": self.traits[i], "labels": self.species[i]}


class FlowerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, traits, labels=None):
        logits = self.net(traits)
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return {"loss": loss, "logits": logits}


def training_rows():
    full = Flowers(960, 1)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    return Subset(full, range(rank, len(full), world))


def metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


set_seed(11)
trainer = Trainer(
    model=FlowerNet(),
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        num_train_epochs=100,
        max_steps=60,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=64,
        learning_rate=4e-3,
        eval_strategy="steps",
        eval_steps=20,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    ),
    train_dataset=training_rows(),
    eval_dataset=Flowers(256, 2),
    compute_metrics=metrics,
)
trainer.train()
