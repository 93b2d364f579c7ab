"""Trainer: the document's two Trainers (document 001, "Fine-tuning a model with the Trainer API")."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator

from datasets import DatasetDict
from transformers import TrainingArguments

from harness.claims import PREPARING, TRAINER_API, WITH_TRAINER, Citation, Claim
from harness.compat import processing_class
from harness.findings import Finding
from harness.loops.trainer import compute_metrics, quiet_trainer, training_arguments
from harness.stages.chain import RECIPE_RESPECTED, Run, Stage
from harness.stages.trace import row_key, rows_of

STAGE = Stage("trainer", loops=("trainer",))

TIMINGS = ("runtime", "samples_per_second", "steps_per_second", "model_preparation_time")


@STAGE.step
def trainer(run: Run) -> None:
    tokenized_datasets = with_label(run)
    run.scratch = tempfile.TemporaryDirectory(prefix="test-trainer-")
    run.first_trainer = quiet_trainer(
        run.model,
        TrainingArguments(run.scratch.name),
        train_dataset=tokenized_datasets["train"],
        eval_dataset=tokenized_datasets["validation"],
        **processing_class(run.tokenizer),
    )
    run.trainer = quiet_trainer(
        run.model,
        training_arguments(run.recipe, run.scratch.name),
        train_dataset=tokenized_datasets["train"],
        eval_dataset=tokenized_datasets["validation"],
        data_collator=run.data_collator,
        **processing_class(run.tokenizer),
        compute_metrics=compute_metrics,
    )
    run.device = run.trainer.args.device
    run.train_dl, run.eval_dl = run.trainer.get_train_dataloader(), run.trainer.get_eval_dataloader()


def with_label(run: Run) -> DatasetDict:
    """The tokenized datasets; the collator knows a label by the names label and labels only."""
    name = run.recipe.label_column
    return (
        run.tokenized_datasets if name in ("label", "labels") else run.tokenized_datasets.rename_column(name, "label")
    )


TRAINER_DEFAULTS = Claim(
    "trainer-defaults",
    'TrainingArguments("test-trainer") alone: three epochs, batches of 8, linear decay from 5e-5, no warmup, the '
    "loss every 500 updates.",
    ("001",),
    TRAINER_API,
    expected={
        "num_train_epochs": 3,
        "per_device_train_batch_size": 8,
        "per_device_eval_batch_size": 8,
        "learning_rate": 5e-5,
        "lr_scheduler_type": "linear",
        "warmup_steps": 0,
        "logging_steps": 500,
    },
    only=WITH_TRAINER,
    words='TrainingArguments("test-trainer") … 每500步告诉一次损失',
    besides=(
        Citation("001", PREPARING, "Trainer一般默认3个epochs"),
        Citation("002", PREPARING, "linear decay from the maximum value (5e-5) to 0 … uses three epochs by default"),
        Citation("003", PREPARING, "de 5e-5 a 0 … El Trainer usa 3"),
    ),
    derived="batches of 8 and no warmup: the loop by hand has them, and 002 says that it has the same defaults",
)


@STAGE.check(TRAINER_DEFAULTS)
def defaults_are_as_documented(run: Run) -> Iterator[Finding]:
    """TrainingArguments("test-trainer") alone gives the documented values."""
    for name, expected in TRAINER_DEFAULTS.expected.items():
        observed = getattr(run.first_trainer.args, name)
        observed = getattr(observed, "value", observed)
        if observed != expected:
            yield Finding(
                expected=f"{name} {expected}",
                observed=f"{observed}",
                where="TrainingArguments(folder)",
                hint="Trainer's default has changed; give the documented value explicitly.",
            )


@STAGE.check(RECIPE_RESPECTED)
def arguments_are_the_recipes(run: Run) -> Iterator[Finding]:
    """The arguments in use are the recipe's."""
    recipe, args = run.recipe, run.trainer.args
    for name, expected in {
        "learning_rate": recipe.lr,
        "num_train_epochs": recipe.epochs,
        "train_batch_size": recipe.batch_size,
        "eval_batch_size": recipe.batch_size,
        "gradient_accumulation_steps": 1,
        "max_steps": -1,
        "seed": recipe.seed,
    }.items():
        if getattr(args, name) != expected:
            yield Finding(
                expected=f"{name} {expected}",
                observed=f"{getattr(args, name)}",
                where="trainer.args",
                hint="With several GPUs in sight Trainer uses all of them: set CUDA_VISIBLE_DEVICES to one.",
            )


TRAINER_COLLATOR = Claim(
    "trainer-collator",
    "Given the tokenizer and no collator, Trainer uses DataCollatorWithPadding.",
    ("001",),
    TRAINER_API,
    expected="DataCollatorWithPadding",
    only=WITH_TRAINER,
    words="data_collator=data_collator,#默认为DataCollatorWithPadding",
)


@STAGE.check(TRAINER_COLLATOR)
def pads_dynamically_by_itself(run: Run) -> Iterator[Finding]:
    """A Trainer that is given the tokenizer and no collator pads each batch with DataCollatorWithPadding."""
    expected, observed = TRAINER_COLLATOR.expected, type(run.first_trainer.data_collator).__name__
    if observed != expected:
        yield Finding(
            expected=expected,
            observed=observed,
            where="Trainer(...).data_collator",
            hint="Give Trainer the tokenizer (processing_class), or the collator itself.",
        )


@STAGE.check(
    Claim(
        "trainer-postprocessing",
        "Trainer removes the unused columns, names the labels and makes tensors by itself.",
        ("002", "003", "004"),
        PREPARING,
        only=WITH_TRAINER,
        words={
            "002": "some things that the Trainer did for us automatically",
            "003": "cosas que *Trainer*",
            "004": "some things that the Trainer did for us automatically",
        },
    )
)
def does_the_postprocessing_by_itself(run: Run) -> Iterator[Finding]:
    """From the tokenized datasets Trainer makes the batches that "A full training" makes by hand: columns and rows."""
    for split, loader in (("train", run.train_dl), ("validation", run.eval_dl)):
        data = run.model_datasets[split].with_format(None)
        expected, columns = Counter(map(row_key, data["input_ids"], data["labels"])), set()
        observed: Counter[str] = Counter()
        for batch in loader:
            columns |= set(batch)
            observed.update(rows_of(batch))
        # Trainer also leaves out what the tokenizer gives and the model does not take.
        taken = set(data.column_names) & {"labels", *inspect.signature(run.model.forward).parameters}
        if columns != taken or observed != expected:
            yield Finding(
                expected=f"{len(data)} rows, each once with its label, with {sorted(taken)}",
                observed=f"{(expected - observed).total()} rows missing, {(observed - expected).total()} others, with "
                f"{sorted(columns)}",
                where=f"{split} dataloader",
                hint="Look at train_dataset, eval_dataset, data_collator and remove_unused_columns.",
            )


TRAINER_NO_METRIC = Claim(
    "trainer-no-metric",
    "Without compute_metrics Trainer tells the loss and no metric.",
    ("001",),
    TRAINER_API,
    expected="loss",
    only=WITH_TRAINER,
    words="compute_metrics() … 否则评估将只会输出 loss",
)


@STAGE.check(TRAINER_NO_METRIC)
def no_metric_without_compute_metrics(run: Run) -> Iterator[Finding]:
    """Without compute_metrics an evaluation gives the loss and timings, and no metric."""
    rows = run.first_trainer.eval_dataset.select(range(min(8, len(run.first_trainer.eval_dataset))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pin_memory, on by default, warns where there is no GPU
        measured = {name.removeprefix("eval_") for name in run.first_trainer.evaluate(rows)} - {*TIMINGS, "epoch"}
    if measured != {TRAINER_NO_METRIC.expected}:
        yield Finding(
            expected=TRAINER_NO_METRIC.expected,
            observed=", ".join(sorted(measured)),
            where="Trainer(...).evaluate()",
            hint="Trainer measures by itself now, or was given compute_metrics.",
        )
