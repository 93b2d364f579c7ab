"""The plain PyTorch loop (document "A full training": the training loop, the evaluation loop)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import PreTrainedModel


def train(
    model: PreTrainedModel,
    train_dataloader: DataLoader[Any],
    optimizer: Optimizer,
    lr_scheduler: LRScheduler,
    device: torch.device,
    progress_bar: tqdm[Any],
    *,
    num_epochs: int,
    updates: int | None = None,
    after_epoch: Callable[[], None] = lambda: None,
) -> None:
    """The document's training loop, which can stop after ``updates`` updates and calls ``after_epoch``."""
    made = 0
    model.train()
    for _ in range(num_epochs):
        for batch in train_dataloader:
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()

            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            progress_bar.update(1)

            made += 1
            if made == updates:
                return
        after_epoch()


def evaluate(
    model: PreTrainedModel, eval_dataloader: DataLoader[Any], metric: Any, device: torch.device
) -> dict[str, float]:
    """The document's evaluation loop; what the metric computes, accuracy and F1 as fractions."""
    model.eval()
    for batch in eval_dataloader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = model(**batch)

        logits = outputs.logits
        predictions = torch.argmax(logits, dim=-1)
        metric.add_batch(predictions=predictions, references=batch["labels"])

    scores: dict[str, float] = metric.compute()
    return scores
