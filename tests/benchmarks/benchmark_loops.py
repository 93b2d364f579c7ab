"""What is measured: the harness's way to train, evaluate and tokenize, and the document's own beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from datasets import Dataset
from torch.optim import AdamW
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertModel,
    DataCollatorWithPadding,
    get_scheduler,
    set_seed,
)

from harness.documented_run.metrics import load_metric
from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.sources import builtin, find_checkpoint
from harness.documented_run.stages import STAGES, Run
from harness.documented_run.stages.chain import without_datasets_cache
from harness.documented_run.stages.train import loop, traced
from harness.errors import CannotTry
from tests.benchmarks.measure import Batch, Device, timed

UPDATES = 5
"""Of a round: short, so that both sides meet the same weather. With 260 updates a side, the ratio of 52 rounds of 5 had
a spread of 0.3 %, that of 13 rounds of 20 one of 2 %."""

EVAL_ROWS = 160
"""Of a round of the evaluation, for the same reason."""

LEFT_OUT = ("equivalence", "train", "evaluate")


def prepared(recipe: Recipe) -> Run:
    """The recipe's steps up to the training."""
    set_seed(recipe.seed)
    run = Run(recipe, updates=UPDATES)
    with without_datasets_cache():
        for stage in STAGES:
            if stage.name not in LEFT_OUT:
                stage.do(run)
    run.progress_bar = tqdm(range(run.num_training_steps), disable=True)
    return run


def name_of(what: str, run: Run) -> str:
    """The name under which a benchmark is kept: other models and data have figures of their own."""
    return f"{what}-{run.recipe.name}"


def bert_base(wanted: Recipe, folder: Path, config: BertConfig | None = None) -> tuple[Recipe, str]:
    """The documented recipe, and what its weights are: "pretrained", or why they are random.

    Without weights or data it is the built-in corpus and a BERT of the same shape, drawn at random into the folder:
    good for throughput, and for nothing else.
    """
    try:
        find_checkpoint(wanted, weights=True)
        if wanted.data is None:
            STAGES[0].do(Run(wanted))
    except CannotTry as reason:
        set_seed(wanted.seed)
        BertModel(config or BertConfig()).save_pretrained(folder)
        AutoTokenizer.from_pretrained(builtin.CHECKPOINT).save_pretrained(folder)
        random = RECIPES["tiny"].with_(name="bert-base-random", checkpoint=str(folder))
        return random, f"random: {reason}"
    return wanted, "pretrained"


@contextmanager
def watched_training(run: Run) -> Iterator[Callable[[], None]]:
    """One round of the train stage's loop, watched by its trace as in a run of the harness."""

    def train() -> None:
        torch.manual_seed(run.recipe.seed)
        loop(run)

    with traced(run):
        yield train


class Document:
    """The document's code with a model, collator and dataloaders of its own, unwatched."""

    def __init__(self, run: Run) -> None:
        recipe, rows = run.recipe, run.model_datasets
        self.seed, self.device = recipe.seed, run.device
        set_seed(recipe.seed)
        self.model = AutoModelForSequenceClassification.from_pretrained(run.checkpoint, num_labels=recipe.num_labels)
        self.model.to(self.device)
        data_collator = DataCollatorWithPadding(tokenizer=run.tokenizer)
        self.train_dataloader = DataLoader(
            rows["train"], shuffle=True, batch_size=recipe.batch_size, collate_fn=data_collator
        )
        first = rows["validation"].select(range(EVAL_ROWS))
        self.eval_dataloader = DataLoader(first, batch_size=recipe.batch_size, collate_fn=data_collator)
        self.optimizer = AdamW(self.model.parameters(), lr=recipe.lr)
        self.lr_scheduler = get_scheduler(
            "linear", optimizer=self.optimizer, num_warmup_steps=0, num_training_steps=run.num_training_steps
        )
        self.progress_bar = tqdm(range(run.num_training_steps), disable=True)

    def batches(self) -> Iterator[Batch]:
        """Those of a round, in its order."""
        torch.manual_seed(self.seed)
        self.model.train()
        return islice(self.train_dataloader, UPDATES)

    def train(self, model: Any = None) -> None:
        """A round; through ``model``, if it is another form of the same one."""
        model = self.model if model is None else model  # a compiled one cannot be asked whether it is true
        for batch in self.batches():
            batch = {k: v.to(self.device) for k, v in batch.items()}
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()

            self.optimizer.step()
            self.lr_scheduler.step()
            self.optimizer.zero_grad()
            self.progress_bar.update(1)

    def evaluate(self) -> dict[str, Any]:
        metric = load_metric()
        self.model.eval()
        for batch in self.eval_dataloader:
            batch = {k: v.to(self.device) for k, v in batch.items()}
            with torch.no_grad():
                outputs = self.model(**batch)

            logits = outputs.logits
            predictions = torch.argmax(logits, dim=-1)
            metric.add_batch(predictions=predictions, references=batch["labels"])
        return metric.compute()


def update_seconds(train: Callable[[], Any], device: Device) -> float:
    """Of an update in a round, when it is warm."""
    return median(timed(train, device) for _ in range(6)) / UPDATES


def spin(seconds: float) -> None:
    """Work for so long; a sleep would be longer than asked for."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def tokenized(run: Run) -> Dataset:
    """The train split through the tokenize stage's function, as the stage maps it, and from no cache."""
    with without_datasets_cache():
        return run.raw_datasets["train"].map(run.tokenize_function, batched=True)


def tokenized_bare(run: Run) -> Any:
    """The same rows through the tokenizer alone."""
    rows = run.raw_datasets["train"]
    return run.tokenizer(*(list(rows[name]) for name in run.recipe.text_columns), truncation=True)
