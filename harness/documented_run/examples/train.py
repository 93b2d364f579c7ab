"""The document's complete training under Accelerate, from the raw corpus to accuracy and F1.

    python train.py
    accelerate config default && accelerate launch train.py
    torchrun --nproc-per-node 2 train.py           # without a GPU: with ACCELERATE_USE_CPU=true before it

and in a notebook:

    from harness.documented_run.examples.train import training_function
    notebook_launcher(training_function, num_processes=2)

``--recipe bert-base`` is the documented training; the default is the built-in one, which fetches nothing. The
evaluation is the document's too, with ``gather_for_metrics``, which several processes need.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.optim import AdamW
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, get_scheduler

from harness.documented_run.metrics import load_metric
from harness.documented_run.recipe import DEFAULT_RECIPE, load_recipe
from harness.documented_run.sources import find_checkpoint, load_raw_datasets
from harness.launch import fewer_than_asked, in_process_group


def training_function(
    recipe_name: str = DEFAULT_RECIPE, data: str | None = None, num_epochs: int = 3
) -> dict[str, float]:
    """Train and evaluate; every process returns the same accuracy and F1, as fractions."""
    accelerator = Accelerator()
    set_seed(42)
    if advice := fewer_than_asked():
        accelerator.print(advice, file=sys.stderr)

    recipe = load_recipe(recipe_name)
    raw_datasets = load_raw_datasets(recipe.with_(data=data or recipe.data))
    checkpoint = find_checkpoint(recipe, weights=True)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)

    def tokenize_function(example):  # type: ignore[no-untyped-def]
        return tokenizer(*(example[name] for name in recipe.text_columns), truncation=True)

    tokenized_datasets = raw_datasets.map(tokenize_function, batched=True)
    data_collator = DataCollatorWithPadding(tokenizer=tokenizer)

    tokenized_datasets = tokenized_datasets.remove_columns([*recipe.text_columns, "idx"])
    tokenized_datasets = tokenized_datasets.rename_column(recipe.label_column, "labels")
    tokenized_datasets.set_format("torch")

    train_dataloader = DataLoader(tokenized_datasets["train"], shuffle=True, batch_size=8, collate_fn=data_collator)
    eval_dataloader = DataLoader(tokenized_datasets["validation"], batch_size=8, collate_fn=data_collator)

    model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)
    optimizer = AdamW(model.parameters(), lr=3e-5)

    train_dl, eval_dl, model, optimizer = accelerator.prepare(train_dataloader, eval_dataloader, model, optimizer)

    num_training_steps = num_epochs * len(train_dl)
    lr_scheduler = get_scheduler(
        "linear",
        optimizer=optimizer,
        num_warmup_steps=0,
        num_training_steps=num_training_steps,
    )

    progress_bar = tqdm(range(num_training_steps), disable=not accelerator.is_main_process)

    model.train()
    for _ in range(num_epochs):
        for batch in train_dl:
            outputs = model(**batch)
            loss = outputs.loss
            accelerator.backward(loss)

            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            progress_bar.update(1)

    metric = load_metric()
    model.eval()
    for batch in eval_dl:
        with torch.no_grad():
            outputs = model(**batch)

        predictions = outputs.logits.argmax(dim=-1)
        predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
        metric.add_batch(predictions=predictions, references=references)

    scores: dict[str, float] = metric.compute()
    counted = {
        "processes": accelerator.num_processes,
        "updates": progress_bar.total,
        "lr": lr_scheduler.get_last_lr()[0],
    }
    accelerator.print(json.dumps(counted | scores))
    if in_process_group():
        # Not accelerator.end_training(), which fails without trackers in Accelerate 0.20.
        torch.distributed.destroy_process_group()
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description="The documented training under Accelerate.")
    parser.add_argument("--recipe", default=DEFAULT_RECIPE, help="whose data and checkpoint: tiny, minilm, bert-base")
    parser.add_argument("--data", help="read the corpus from this folder")
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    training_function(arguments.recipe, arguments.data, arguments.epochs)


if __name__ == "__main__":
    main()
