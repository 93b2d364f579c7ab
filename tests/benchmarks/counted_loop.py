"""The loop whose instructions are counted: the document's with its evaluation, a very small BERT and made-up rows.

Python is what is counted, so the tensors are small. It is an ordinary script: ``harness check`` runs it as it is.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_scheduler

from tests.benchmarks.callgrind import START, STOP, instrument

EPOCHS, BATCHES, BATCH_SIZE = 12, 5, 8

FIRST = 8
"""The first epoch that is counted. Before it everything has been used once, and the passes that are looked at closely
are over; the updates after it, 41 to 60, are none at which a trace keeps the digests of all tensors (32, 64)."""

UPDATES = (EPOCHS - FIRST) * BATCHES


class Loop:
    """The documented objects."""

    def __init__(self) -> None:
        torch.manual_seed(42)
        ids = torch.randint(5, 60, ((BATCHES + 2) * BATCH_SIZE, 12))
        rows: Any = [
            {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": label}
            for row, label in zip(ids, ids[:, 0] % 2, strict=True)
        ]
        split = BATCHES * BATCH_SIZE
        self.device = torch.device("cpu")
        self.train_dataloader: DataLoader[Any] = DataLoader(rows[:split], shuffle=True, batch_size=BATCH_SIZE)
        self.eval_dataloader: DataLoader[Any] = DataLoader(rows[split:], batch_size=BATCH_SIZE)
        self.model = BertForSequenceClassification(
            BertConfig(
                vocab_size=60,
                hidden_size=8,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=16,
                max_position_embeddings=16,
            )
        )
        self.optimizer = AdamW(self.model.parameters(), lr=1e-3)
        self.lr_scheduler = get_scheduler(
            "linear", optimizer=self.optimizer, num_warmup_steps=0, num_training_steps=EPOCHS * BATCHES
        )

    def train(self, settle: Callable[[], object] = lambda: None) -> None:
        """``settle`` does what was put off, so that what is counted is the work of these updates and of no others."""
        for epoch in range(EPOCHS):
            if epoch == FIRST:
                settle()
                gc.collect()  # as much garbage for everybody
                instrument(START)
            self.model.train()
            for batch in self.train_dataloader:
                batch = {k: v.to(self.device) for k, v in batch.items()}
                outputs = self.model(**batch)
                loss = outputs.loss
                loss.backward()

                self.optimizer.step()
                self.lr_scheduler.step()
                self.optimizer.zero_grad()
            self.evaluate()
        settle()
        instrument(STOP)

    def evaluate(self) -> float:
        """The accuracy."""
        right, rows = 0, 0
        self.model.eval()
        for batch in self.eval_dataloader:
            batch = {k: v.to(self.device) for k, v in batch.items()}
            with torch.no_grad():
                outputs = self.model(**batch)
            predictions = torch.argmax(outputs.logits, dim=-1)
            right += (predictions == batch["labels"]).sum().item()
            rows += len(predictions)
        return right / rows


if __name__ == "__main__":
    Loop().train()
