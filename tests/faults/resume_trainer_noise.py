"""Trainer going on within an epoch, which should give the rows the noise that they would have had."""

import json
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed


class Noisy(Dataset):
    """Rows with other noise each time that they are read."""

    def __init__(self) -> None:
        self.features = torch.randn(64, 4)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = self.features[index]
        return {"features": row + 0.1 * torch.randn(4), "labels": (row.sum() > 0).long()}


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
arguments = TrainingArguments(
    "trained",
    per_device_train_batch_size=8,
    num_train_epochs=1,
    save_strategy="steps",
    save_steps=4,
    report_to="none",
)
last = next((str(each) for each in Path("trained").glob("checkpoint-*") if whole(each)), None)
Trainer(Classifier(), arguments, train_dataset=Noisy()).train(resume_from_checkpoint=last)
