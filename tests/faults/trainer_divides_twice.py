"""Four micro-batches of 4 of a model of one's own under Trainer, which should be one batch of 16."""

import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, features: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.layers(features)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


set_seed(0)
features = torch.randn(64, 4)
rows = [{"features": row, "labels": int(row.sum() > 0)} for row in features]

with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
        num_train_epochs=3,
        report_to="none",
        save_strategy="no",
    )
    Trainer(Classifier(), arguments, train_dataset=rows).train()
