"""Trainer going on within its second epoch, which should give the remaining rows of it."""

import json
from pathlib import Path

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


def whole(checkpoint: Path) -> bool:
    """Trainer writes its state last."""
    try:
        return bool(json.loads((checkpoint / "trainer_state.json").read_text()))
    except (OSError, ValueError):
        return False


set_seed(0)
features = torch.randn(64, 4)
rows = [{"features": row, "labels": int(row.sum() > 0)} for row in features]
arguments = TrainingArguments(
    "trained",
    per_device_train_batch_size=8,
    num_train_epochs=2,
    save_strategy="steps",
    save_steps=12,
    report_to="none",
)
last = next((str(each) for each in Path("trained").glob("checkpoint-*") if whole(each)), None)
Trainer(Classifier(), arguments, train_dataset=rows).train(resume_from_checkpoint=last)
