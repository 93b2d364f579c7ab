"""What is measured: the harness's way to train, evaluate and tokenize, and the document's own beside it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import DataCollatorWithPadding, get_scheduler, set_seed

from harness.metrics import load_metric
from harness.recipe import Recipe
from harness.stages import STAGES, Run

UPDATES = 20
"""Of a round: long enough for the clock, short enough that both sides meet the same weather."""

LEFT_OUT = ("equivalence", "train", "evaluate")


def prepared(recipe: Recipe) -> Run:
    """The recipe's steps up to the training."""
    set_seed(recipe.seed)
    run = Run(recipe)
    for stage in STAGES:
        if stage.name not in LEFT_OUT:
            stage.do(run)
    return run


@dataclass
class Document:
    """The document's code with its own model, collator and dataloaders, unwatched."""

    run: Run

    def __post_init__(self) -> None:
        recipe, rows = self.run.recipe, self.run.model_datasets
        self.model, self.device = deepcopy(self.run.model), self.run.device
        data_collator = DataCollatorWithPadding(tokenizer=self.run.tokenizer)
        self.train_dataloader = DataLoader(
            rows["train"], shuffle=True, batch_size=recipe.batch_size, collate_fn=data_collator
        )
        self.eval_dataloader = DataLoader(rows["validation"], batch_size=recipe.batch_size, collate_fn=data_collator)
        self.optimizer = AdamW(self.model.parameters(), lr=recipe.lr)
        self.lr_scheduler = get_scheduler(
            "linear", optimizer=self.optimizer, num_warmup_steps=0, num_training_steps=self.run.num_training_steps
        )
        self.progress_bar = tqdm(range(self.run.num_training_steps), disable=True)

    def train(self, updates: int = UPDATES) -> None:
        model, device = self.model, self.device
        torch.manual_seed(self.run.recipe.seed)
        model.train()
        for number, batch in enumerate(self.train_dataloader, start=1):
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()

            self.optimizer.step()
            self.lr_scheduler.step()
            self.optimizer.zero_grad()
            self.progress_bar.update(1)
            if number == updates:
                return

    def evaluate(self) -> dict[str, float]:
        metric = load_metric()
        self.model.eval()
        for batch in self.eval_dataloader:
            batch = {k: v.to(self.device) for k, v in batch.items()}
            with torch.no_grad():
                outputs = self.model(**batch)
            predictions = torch.argmax(outputs.logits, dim=-1)
            metric.add_batch(predictions=predictions, references=batch["labels"])
        return metric.compute()

    def batches(self, updates: int = UPDATES) -> Iterator[dict[str, torch.Tensor]]:
        """Those of a round, in its order."""
        torch.manual_seed(self.run.recipe.seed)
        return (batch for batch, _ in zip(self.train_dataloader, range(updates), strict=False))
