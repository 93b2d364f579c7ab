"""Trainer: the document's two Trainers (document 001, "Fine-tuning a model with the Trainer API")."""

from __future__ import annotations

import inspect
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, DatasetDict
from transformers import EvalPrediction, PreTrainedModel, Trainer, TrainingArguments

from harness.compat import adamw_classes, evaluation_strategy, processing_class, without_colours
from harness.documented_run.claims import Invariant, claim
from harness.documented_run.loops.trainer import compute_metrics, quiet_trainer, training_arguments
from harness.documented_run.stages.chain import RECIPE_RESPECTED, Run, Stage
from harness.documented_run.stages.checkpoint import checkpoint_tensors
from harness.documented_run.stages.model import head_and_backbone, not_from_checkpoint
from harness.documented_run.stages.replays.twins import copied
from harness.documented_run.stages.trace import row_key, rows_of
from harness.findings import Finding, NotApplicable, expect
from harness.torch_objects import checksum

STAGE = Stage("trainer", loops=("trainer",))

TIMINGS = ("runtime", "samples_per_second", "steps_per_second")
PREPARATION = "model_preparation_time"
"""A time that Trainer tells of the first evaluation alone, from transformers 4.46 on."""

EVALUATED_ROWS = 8
"""Rows that say what Trainer tells of an evaluation."""

SHORT, EVERY = 4, 2
"""Updates of a short training, and how often it saves or evaluates."""


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
        compute_metrics=partial(compute_metrics, metrics=run.recipe.metrics),
    )
    run.device = run.trainer.args.device
    run.train_dl, run.eval_dl = run.trainer.get_train_dataloader(), run.trainer.get_eval_dataloader()


def with_label(run: Run) -> DatasetDict:
    """The tokenized datasets; the collator knows a label by the names label and labels only."""
    name = run.recipe.label_column
    return (
        run.tokenized_datasets if name in ("label", "labels") else run.tokenized_datasets.rename_column(name, "label")
    )


TRAINER_DEFAULTS = claim("trainer-defaults")


@STAGE.check(TRAINER_DEFAULTS)
def defaults_are_as_documented(run: Run) -> Iterator[Finding]:
    """TrainingArguments("test-trainer") alone gives the documented values."""
    for name, expected in TRAINER_DEFAULTS.expected.items():
        observed = getattr(run.first_trainer.args, name)
        observed = getattr(observed, "value", observed)
        yield from expect(
            expected,
            observed,
            of=name,
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
        yield from expect(
            expected,
            getattr(args, name),
            of=name,
            where="trainer.args",
            hint="With several GPUs in sight Trainer uses all of them: set CUDA_VISIBLE_DEVICES to one.",
        )


TRAINER_COLLATOR = claim("trainer-collator")


@STAGE.check(TRAINER_COLLATOR)
def pads_dynamically_by_itself(run: Run) -> Iterator[Finding]:
    """A Trainer that is given the tokenizer and no collator pads each batch with DataCollatorWithPadding."""
    expected, observed = TRAINER_COLLATOR.expected, type(run.first_trainer.data_collator).__name__
    yield from expect(
        expected,
        observed,
        where="Trainer(...).data_collator",
        hint="Give Trainer the tokenizer (processing_class), or the collator itself.",
    )


@STAGE.check(claim("trainer-postprocessing"))
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


TRAINER_NO_METRIC = claim("trainer-no-metric")


@STAGE.check(TRAINER_NO_METRIC)
def no_metric_without_compute_metrics(run: Run) -> Iterator[Finding]:
    """Without compute_metrics an evaluation gives the loss and timings, and no metric."""
    with _without_warnings():
        told = run.first_trainer.evaluate(few_rows(run.first_trainer.eval_dataset))
    measured = {name.removeprefix("eval_") for name in told} - {*TIMINGS, PREPARATION, "epoch"}
    yield from expect(
        {TRAINER_NO_METRIC.expected},
        measured,
        where="Trainer(...).evaluate()",
        hint="Trainer measures by itself now, or was given compute_metrics.",
    )


def few_rows(rows: Dataset, count: int = EVALUATED_ROWS) -> Dataset:
    return rows.select(range(min(count, len(rows))))


@contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pin_memory, on by default, warns where there is no GPU
        yield


@contextmanager
def short_trainer(
    run: Run,
    *,
    model: PreTrainedModel | None = None,
    compute_metrics: Callable[[EvalPrediction], dict[str, float]] | None = None,
    **arguments: Any,
) -> Iterator[Trainer]:
    """A Trainer like the document's first, for :data:`SHORT` updates of a copy of the model, in a folder of its own."""
    first, size = run.first_trainer, run.recipe.batch_size
    with _without_warnings(), tempfile.TemporaryDirectory(dir=run.scratch.name) as folder:
        training_args = TrainingArguments(
            folder,
            **{
                "max_steps": SHORT,
                "per_device_train_batch_size": size,
                "per_device_eval_batch_size": size,
                "seed": run.recipe.seed,
                "save_strategy": "no",
                "report_to": "none",
            }
            | arguments,
        )
        yield quiet_trainer(
            copied(run) if model is None else model,
            training_args,
            kind=type(first),
            train_dataset=few_rows(first.train_dataset, SHORT * size),
            eval_dataset=few_rows(first.eval_dataset),
            data_collator=first.data_collator,
            **processing_class(run.tokenizer),
            compute_metrics=compute_metrics,
        )


SAVED = ("optimizer.pt", "scheduler.pt", "trainer_state.json")
"""What a checkpoint has beside the weights, by which the training can go on."""


@STAGE.check(claim("trainer-checkpoints"))
def keeps_checkpoints(run: Run) -> Iterator[Finding]:
    """Every save_steps updates Trainer's folder gets a checkpoint: weights, optimizer, schedule and state."""
    with short_trainer(run, save_strategy=run.first_trainer.args.save_strategy, save_steps=EVERY) as trainer:
        trainer.train()
        for update in range(EVERY, SHORT + 1, EVERY):
            folder = Path(trainer.args.output_dir, f"checkpoint-{update}")
            files = {path.name for path in folder.glob("*")}
            missing = sorted({*SAVED} - files)
            if not any(name.startswith(("model", "pytorch_model")) for name in files):
                missing.insert(0, "the weights")
            if missing:
                yield Finding(
                    expected=f"{folder.name} with the weights, {', '.join(SAVED)}",
                    observed=f"without {', '.join(missing)}" if files else "no such folder",
                    where="Trainer(...).train()",
                    hint="Look at save_strategy and save_steps: a training that is killed cannot be resumed.",
                )


@STAGE.check(
    claim("trainer-final-model"),
    severity="warning",  # a run of the harness keeps its model itself
)
def keeps_the_trained_model(run: Run) -> Iterator[Finding]:
    """After four updates, saved every three, a checkpoint in Trainer's folder has the weights of the fourth.

    Trainer saves after the last update from transformers 4.42.0 on (huggingface/transformers#30160); until 4.41.2 the
    folder had the multiples of save_steps alone: of the documented training update 1000, and not 1377.
    """
    with short_trainer(run, save_strategy=run.first_trainer.args.save_strategy, save_steps=SHORT - 1) as trainer:
        trainer.train()
        folders = sorted(path for path in Path(trainer.args.output_dir).glob("checkpoint-*"))
        trained = {name: weights.detach().cpu() for name, weights in trainer.model.named_parameters()}
        kept = [folder.name for folder in folders if _has(trained, checkpoint_tensors(str(folder)))]
    if not kept:
        yield Finding(
            expected=f"the weights after update {SHORT} in a checkpoint",
            observed=f"{', '.join(folder.name for folder in folders) or 'no checkpoint'}, with other weights",
            where=f"Trainer(...).train() with save_steps={SHORT - 1}",
            hint="Call trainer.save_model() after trainer.train().",
        )


def _has(weights: dict[str, torch.Tensor], stored: dict[str, torch.Tensor]) -> bool:
    return all(name in stored and torch.equal(stored[name], values) for name, values in weights.items())


@STAGE.check(
    Invariant("trainer-resumes", "A training that is resumed from a checkpoint goes on as if it had not stopped."),
    severity="warning",  # the documented training is not resumed
)
def resumes_from_a_checkpoint(run: Run) -> Iterator[Finding]:
    """Resumed from its checkpoint after two updates of four, Trainer ends with the same weights, bit for bit."""
    if run.device.type != "cpu":
        raise NotApplicable(f"sums on {run.device.type} are not the same each time")
    with short_trainer(run, save_strategy="steps", save_steps=EVERY) as whole:
        whole.train()
        with short_trainer(run) as resumed:
            observed = _resumed(resumed, Path(whole.args.output_dir, f"checkpoint-{EVERY}"), whole)
    if observed is not None:
        yield Finding(
            expected=f"the weights that {SHORT} updates give",
            observed=observed,
            where=f"trainer.train(resume_from_checkpoint=checkpoint-{EVERY})",
            hint="Do not resume on these versions; what is not read back is missing in every update that follows.",
        )


def _resumed(resumed: Trainer, checkpoint: Path, whole: Trainer) -> str | None:
    """How a resumed training ends otherwise than the whole one; None where it does not."""
    try:
        resumed.train(resume_from_checkpoint=str(checkpoint))
    except Exception as error:  # noqa: BLE001 - of whatever the library cannot read back
        return f"{type(error).__name__}: {without_colours(str(error).partition(chr(10))[0])}"
    pairs = zip(resumed.model.parameters(), whole.model.parameters(), strict=True)
    apart = max(float((one - other).abs().max()) for one, other in pairs)
    return f"weights up to {apart:.1e} apart" if apart > 0 else None


@STAGE.check(claim("trainer-eval-steps"))
def evaluates_every_eval_steps(run: Run) -> Iterator[Finding]:
    """A Trainer with the evaluation strategy "steps" evaluates after every eval_steps updates, and at no other time."""
    with short_trainer(run, **evaluation_strategy("steps"), eval_steps=EVERY) as trainer:
        trainer.train()
    expected = [*range(EVERY, SHORT + 1, EVERY)]
    observed = [entry["step"] for entry in trainer.state.log_history if "eval_loss" in entry]
    yield from expect(
        expected,
        observed,
        of="evaluations after updates",
        where=f"eval_steps={EVERY}",
        hint="Look at the evaluation strategy and at callbacks that change when Trainer evaluates.",
    )


@STAGE.check(claim("trainer-no-evaluation"))
def evaluates_only_where_asked(run: Run) -> Iterator[Finding]:
    """With the default arguments Trainer evaluates at no time, though it is given a validation set."""
    args = run.first_trainer.args
    name = next(iter(evaluation_strategy("no")))
    strategy = getattr(getattr(args, name), "value", getattr(args, name))
    with short_trainer(run, **evaluation_strategy(strategy)) as trainer:
        trainer.train()
    observed = [entry["step"] for entry in trainer.state.log_history if "eval_loss" in entry]
    if strategy != "no" or observed:
        yield Finding(
            expected=f'{name} "no", and no evaluation',
            observed=f'"{strategy}", evaluations after {", ".join(map(str, observed)) or "none"} of {SHORT} updates',
            where="TrainingArguments(folder)",
            hint="Trainer evaluates by default now, or was told to: an evaluation costs time.",
        )


STRATEGIES = claim("trainer-strategies")


@STAGE.check(STRATEGIES)
def takes_steps_and_epoch_for_strategies(run: Run) -> Iterator[Finding]:
    """TrainingArguments takes the evaluation strategies "steps" and "epoch", and refuses "step"."""
    for strategy, expected in STRATEGIES.expected.items():
        try:
            type(run.first_trainer.args)(run.scratch.name, **evaluation_strategy(strategy))
        except ValueError:
            taken = False
        else:
            taken = True
        if taken != expected:
            yield Finding(
                expected=f'"{strategy}" {"taken" if expected else "refused"}',
                observed="taken" if taken else "refused",
                where="TrainingArguments",
                hint="Look at the names in transformers.trainer_utils.IntervalStrategy.",
            )


@STAGE.check(claim("trainer-optimizer"))
def optimizes_with_adamw(run: Run) -> Iterator[Finding]:
    """A Trainer with the default arguments makes an AdamW."""
    with short_trainer(run, optim=run.first_trainer.args.optim) as trainer:
        optimizer = trainer.create_optimizer()
    if not isinstance(optimizer, adamw_classes()):
        yield Finding(
            expected="AdamW",
            observed=f"{type(optimizer).__module__}.{type(optimizer).__qualname__}",
            where="Trainer(...).create_optimizer()",
            hint='Give TrainingArguments optim="adamw_torch".',
        )


@STAGE.check(claim("trainer-predict-times"))
def predict_tells_loss_and_times(run: Run) -> Iterator[Finding]:
    """Without compute_metrics predict() tells the loss and three times, which agree with the clock and the rows."""
    rows = few_rows(run.first_trainer.eval_dataset)
    began = time.perf_counter()
    with _without_warnings():
        told = dict(run.first_trainer.predict(rows).metrics or {})
    took = time.perf_counter() - began
    told.pop(f"test_{PREPARATION}", None)
    names = {f"test_{name}" for name in ("loss", *TIMINGS)}
    if set(told) != names:
        yield Finding(
            expected=", ".join(sorted(names)),
            observed=", ".join(sorted(told)),
            where="Trainer(...).predict().metrics",
            hint="Look at compute_metrics, and at what this version of Trainer tells.",
        )
        return
    runtime, rate = told["test_runtime"], told["test_samples_per_second"]
    # Trainer rounds seconds to four digits and rates to three.
    rounding = 5e-5 * rate + 5e-4 * runtime + 1e-6
    if not 0 < runtime <= took + 1e-4 or abs(rate * runtime - len(rows)) > rounding:
        yield Finding(
            expected=f"at most {took:.4f} s, and rows a second that give {len(rows)} rows in that time",
            observed=f"{runtime} s and {rate} rows a second: {rate * runtime:.2f} rows",
            where="Trainer(...).predict().metrics",
            hint="Trainer's times are not those of this prediction.",
        )


@STAGE.check(claim("eval-prediction"))
def compute_metrics_takes_an_eval_prediction(run: Run) -> Iterator[Finding]:
    """compute_metrics gets the logits and labels of all rows as an EvalPrediction, and gives names and floats."""
    rows, calls = few_rows(run.first_trainer.eval_dataset), []

    def heard(eval_preds: EvalPrediction) -> dict[str, float]:
        calls.append(eval_preds)
        return {}

    with short_trainer(run, compute_metrics=run.trainer.compute_metrics and heard) as trainer:
        trainer.evaluate(rows)
    if len(calls) != 1:
        yield _about_metrics("one call with all rows", f"{len(calls)} calls")
        return
    given = calls[0]
    shapes = [(len(rows), run.recipe.num_labels), (len(rows),)]
    observed = [tuple(getattr(getattr(given, name, None), "shape", ())) for name in ("predictions", "label_ids")]
    if not isinstance(given, EvalPrediction) or observed != shapes or [*given.label_ids] != labels_of(rows):
        yield _about_metrics(
            f"an EvalPrediction: predictions {shapes[0]}, and the label_ids {shapes[1]} of the rows",
            f"a {type(given).__name__}: predictions {observed[0]}, label_ids {observed[1]}",
        )
        return
    returned = run.trainer.compute_metrics(given)
    if not isinstance(returned, dict) or not returned or not all(map(_is_metric, returned.items())):
        yield _about_metrics("a dict of names to floats", f"{returned!r}")


def labels_of(rows: Dataset) -> list[int]:
    return list(rows["labels" if "labels" in rows.column_names else "label"])


def _is_metric(item: tuple[Any, Any]) -> bool:
    return isinstance(item[0], str) and isinstance(item[1], float)


def _about_metrics(expected: str, observed: str) -> Finding:
    return Finding(
        expected=expected,
        observed=observed,
        where="compute_metrics",
        hint='Take (logits, labels) and return one number for each name, as {"accuracy": 0.86}.',
    )


@STAGE.check(claim("trainer-new-model"))
def takes_a_new_model(run: Run) -> Iterator[Finding]:
    """The second Trainer starts from the checkpoint; given a trained model it would go on with that."""
    _, backbone = head_and_backbone(run)
    if trained := not_from_checkpoint(run, backbone):
        yield Finding(
            expected=f"the backbone of {run.checkpoint} in the second Trainer",
            observed=f"{len(trained)} of {len(backbone)} tensors have other values",
            where=trained[0],
            hint="Call from_pretrained again before the second Trainer: this model is trained already.",
        )
    with short_trainer(run, max_steps=1) as first:
        first.train()
    left = checksum(first.model.parameters())
    with short_trainer(run, model=first.model, max_steps=1, learning_rate=0.0) as second:
        second.train()
    if checksum(second.model.parameters()) != left:
        yield Finding(
            expected="a second training that starts from the weights the first one left",
            observed="other weights after an update with learning rate 0",
            where="Trainer(trained_model, ...).train()",
            hint="This version of Trainer creates the model again: compare its weights with the checkpoint.",
        )
