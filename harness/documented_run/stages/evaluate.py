"""Evaluate: accuracy and F1, or what a recipe measures, on the validation set (document "The evaluation loop")."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification

from harness import launch
from harness.documented_run.claims import BALL_PARK, RESULT, TRAINER_RESULT, Invariant, claim
from harness.documented_run.metrics import load_metric, scores_of
from harness.documented_run.recipe import is_module
from harness.documented_run.stages.batches import fixed_length_rows
from harness.documented_run.stages.chain import RECIPE_RESPECTED, Run, Stage, first_difference
from harness.documented_run.stages.model import PADDING_INVARIANT, evaluated
from harness.documented_run.stages.trace import Trace, row_key
from harness.documented_run.stages.train import evaluation_loop, in_turn, rows_in_turn, rows_repeated, sign_of_life
from harness.findings import Finding, NotApplicable, expect
from harness.watch.facts.formula import Formula, formula
from harness.watch.facts.formulas import Tally, mistakes, part_of, summed, values

STAGE = Stage("evaluate")

FORMULAS: Mapping[str, tuple[str, Formula | None]] = {
    "accuracy": ("accuracy", None),
    "f1": ("f1", formula("class", number=1)),
    "f1_macro": ("f1", formula("macro")),
    "f1_micro": ("f1", formula("micro")),
    "f1_weighted": ("f1", formula("weighted")),
    "matthews_correlation": ("mcc", formula("all-classes")),
}
"""Name of a metric to its kind and its formula among those by which ``check`` explains what scripts report: the
metric's own code must not vouch for itself."""

CERTAIN = 1e-4
"""Lead that one logit must have for its answer to count as certain: float32's rounding moves them less."""


@STAGE.step
def evaluate(run: Run) -> None:
    metric = load_metric(run.recipe.metrics)
    with Trace(run.model, metric=metric, on_event=sign_of_life) as run.evaluation:
        run.metrics = evaluation_loop(run, metric)


@STAGE.step_of("trainer")
def predict(run: Run) -> None:
    """``predict`` instead of an evaluation loop, the argmax of its logits, and the metric of all rows at once."""
    metric = load_metric(run.recipe.metrics)
    with Trace(run.model, metric=metric) as run.evaluation:
        run.predictions = run.trainer.predict(run.trainer.eval_dataset)
        preds = np.argmax(run.predictions.predictions, axis=-1)
        # The document gives both to compute(), which hands them to add_batch; several metrics together do not.
        metric.add_batch(predictions=preds, references=run.predictions.label_ids)
        run.metrics = metric.compute()


def predictions_seen(run: Run) -> list[int]:
    """The argmax of the logits of every row that the models of all ranks were shown, without the rows repeated."""
    predictions = [prediction for batch in in_turn(run.evaluation_forwards) for prediction in batch.predictions]
    return predictions[: len(predictions) - rows_repeated(run, "validation")]


def labels(run: Run) -> list[int]:
    """The raw validation labels."""
    return list(run.raw_datasets["validation"][run.recipe.label_column])


@STAGE.check(claim("eval-mode"), fault="Modules were in train mode in the evaluation.")
def evaluates_in_eval_mode(run: Run) -> Iterator[Finding]:
    """Every module is in eval mode in every forward of the evaluation."""
    wrong = [forward for forward in run.evaluation.forwards if not forward.evaluating]
    if wrong:
        yield Finding(
            expected="every module in eval mode",
            observed=f"{len(wrong)} of {len(run.evaluation.forwards)} batches with modules in train mode",
            hint="Call model.eval() before the evaluation loop: dropout makes the predictions random.",
        )


@STAGE.check(claim("no-grad"), fault="The evaluation builds graphs for gradients.")
def computes_no_gradients(run: Run) -> Iterator[Finding]:
    """No forward of the evaluation builds a graph for gradients."""
    wrong = [forward for forward in run.evaluation.forwards if forward.gradients]
    if wrong:
        yield Finding(
            expected="outputs that need no gradient",
            observed=f"{len(wrong)} of {len(run.evaluation.forwards)} batches with gradients",
            hint="Wrap the forward in torch.no_grad(): the graph of every batch costs memory and time.",
        )


@STAGE.check(
    claim("whole-validation-set"),
    fault="The model is not shown each validation row once, in order, with its own label.",
)
def sees_each_row_once_in_order(run: Run) -> Iterator[Finding]:
    """The model is shown each validation row once, in order, with its own label.

    With several processes the ranks take the batches in turn, and the last ones are filled up with the first rows.
    """
    rows = run.model_datasets["validation"].with_format(None)
    expected = list(map(row_key, rows["input_ids"], rows["labels"]))
    expected += islice(cycle(expected), rows_repeated(run, "validation"))
    observed = rows_in_turn(run.evaluation_forwards)
    wrong = first_difference(observed, expected)
    if wrong is not None:
        yield Finding(
            expected=f"{len(expected)} rows, each once, in order",
            observed=f"{len(observed)} rows, the first difference at row {wrong}",
            where="split validation",
            hint="Go through the whole eval_dataloader once, without shuffle and drop_last.",
        )


@STAGE.check(claim("argmax"), fault="What the metric gets as predictions is not the argmax of the logits.")
def predicts_the_argmax(run: Run) -> Iterator[Finding]:
    """What the metric gets as predictions is the argmax of the model's logits."""
    expected = predictions_seen(run)
    observed = [prediction for batch in run.evaluation.metric_batches for prediction in batch.predictions]
    wrong = [row for row, (a, b) in enumerate(zip(observed, expected, strict=False)) if a != b]
    if wrong:
        yield Finding(
            expected=f"the argmax of the logits, {expected[wrong[0]]} in row {wrong[0]}",
            observed=f"{observed[wrong[0]]}, and {len(wrong)} rows in all that differ",
            hint="Use torch.argmax(logits, dim=-1): the last dimension is the classes.",
        )


@STAGE.check(
    claim("add-batch"), fault="The metric gets another number of predictions or labels than there are validation rows."
)
def adds_every_batch(run: Run) -> Iterator[Finding]:
    """The metric gets as many predictions and labels as there are validation rows."""
    expected = len(labels(run))
    predictions = sum(len(batch.predictions) for batch in run.evaluation.metric_batches)
    references = sum(len(batch.references) for batch in run.evaluation.metric_batches)
    if (predictions, references) != (expected, expected):
        yield Finding(
            expected=f"{expected} predictions and labels",
            observed=f"{predictions} predictions and {references} labels",
            hint="Call metric.add_batch once for each batch, inside the loop, on a fresh metric.",
        )


@STAGE.check("labels-untouched", fault="The metric gets labels other than the raw validation labels.")
def scores_against_the_raw_labels(run: Run) -> Iterator[Finding]:
    """The labels that the metric gets are the raw validation labels, row by row."""
    expected = labels(run)
    observed = [reference for batch in run.evaluation.metric_batches for reference in batch.references]
    wrong = [row for row, (a, b) in enumerate(zip(observed, expected, strict=False)) if a != b]
    if wrong:
        yield Finding(
            expected=f"label {expected[wrong[0]]} in row {wrong[0]}",
            observed=f"{observed[wrong[0]]}, and {len(wrong)} rows in all that differ",
            hint='Give the metric references=batch["labels"] of the same batch as the predictions.',
        )


@STAGE.check(
    claim("metric-values"),
    fallback_invariant=RECIPE_RESPECTED,
    fault="The scores are not those of the model's own predictions on the raw labels.",
)
def metric_is_right(run: Run) -> Iterator[Finding]:
    """The scores are those of the model's own predictions on the raw labels: of each metric named, and no other."""
    expected = scores_expected(run)
    if run.metrics.keys() != expected.keys() or not all(
        same_score(run.metrics[name], value) for name, value in expected.items()
    ):
        yield Finding(
            expected=f"{expected}",
            observed=f"{run.metrics}{''.join(by_mistake(run, expected))}",
            hint="Compute the metric once, after the last batch, from the predictions of this model.",
        )


def scores_expected(run: Run) -> dict[str, float]:
    """Scores by name: counted by hand, or what a module of the user's own makes of all predictions at once."""
    predictions, references = predictions_seen(run), labels(run)
    expected: dict[str, float] = {}
    if own := [metric for metric in run.recipe.metrics if is_module(metric)]:
        rows = min(len(predictions), len(references))
        expected = load_metric(own).compute(predictions=predictions[:rows], references=references[:rows])
    named = [metric for metric in run.recipe.metrics if not is_module(metric)]
    return expected | {name: score(name, predictions, references) for name in named}


def score(name: str, predictions: Sequence[int], references: Sequence[int]) -> float:
    """One of the named metrics of as many rows as both sequences have; 0 where it is not defined.

    >>> score("f1_macro", [0, 1, 2, 2], [0, 1, 1, 2])
    0.7777777777777777
    """
    kind, by = FORMULAS[name]
    found = values(Tally(summed([part_of(predictions, references)])))
    return next((each.value for each in found if each.kind == kind and by in (each.formula, None)), 0.0)


def by_mistake(run: Run, expected: dict[str, float]) -> Iterator[str]:
    """For each score that is wrong, the mistake that gives it, if one does."""
    references, parts = labels(run), []
    for batch in in_turn(run.evaluation_forwards):
        parts.append(part_of(batch.predictions, references))
        references = references[len(batch.predictions) :]
    known = list(mistakes(Tally(summed(parts), size=run.recipe.batch_size))) if parts else []
    for name, observed in run.metrics.items():
        kind, _ = FORMULAS.get(name, (None, None))
        wrong = not same_score(observed, expected.get(name, math.nan))
        by = (each for each in known if wrong and each.kind == kind and same_score(observed, each.value))
        yield from (f"; {name} is {each.formula}" for each in list(by)[:1])


def same_score(observed: float, expected: float) -> bool:
    both_undefined = math.isnan(observed) and math.isnan(expected)
    return both_undefined or math.isclose(observed, expected, rel_tol=1e-12, abs_tol=1e-12)


def logits_of(run: Run, loader: Iterable[Any]) -> torch.Tensor:
    """What the model says of every row, without the other processes: rows x classes."""
    seen = []
    for batch in loader:
        sign_of_life()
        seen.append(evaluated(run, {name: values.to(run.device) for name, values in batch.items()}).logits.cpu())
    return torch.cat(seen)


def answered_otherwise(predictions: list[int], logits: torch.Tensor) -> list[int]:
    """The rows whose prediction is another than these logits', not counting those that rounding may decide."""
    first, second = logits.topk(2, dim=-1).values.unbind(dim=-1)
    certain = (first - second > CERTAIN).tolist()
    expected = logits.argmax(dim=-1).tolist()
    return [row for row, sure in enumerate(certain) if sure and predictions[row : row + 1] != [expected[row]]]


@STAGE.check(PADDING_INVARIANT, fault="Answers change when every row is padded to 128 tokens.")
def fixed_length_padding_keeps_the_metrics(run: Run) -> Iterator[Finding]:
    """No answer, and so no metric, changes when every row is padded to 128 tokens, as for TPUs."""
    rows: Any = fixed_length_rows(run, "validation", run.model.config)
    loader: DataLoader[Any] = DataLoader(rows, batch_size=run.recipe.batch_size, collate_fn=run.data_collator)
    wrong = answered_otherwise(predictions_seen(run), logits_of(run, loader))
    if wrong:
        yield Finding(
            expected="the answers of the evaluation",
            observed=f"{len(wrong)} rows with another answer, the first is row {wrong[0]}",
            where="split validation, padded to 128 tokens",
            hint="The attention mask does not reach the model, or the padding is not marked in it.",
        )


@STAGE.check(
    "one-process-metrics", fault="The metrics over all processes differ from those of one that goes through all rows."
)
def metrics_are_those_of_one_process(run: Run) -> Iterator[Finding]:
    """The metrics over all processes are exactly those of one that goes through all rows, for the same weights."""
    if run.recipe.processes == 1:
        raise NotApplicable("one process")
    logits, metric = logits_of(run, run.eval_dataloader), load_metric(run.recipe.metrics)
    expected = metric.compute(predictions=logits.argmax(dim=-1), references=labels(run))
    if run.metrics != expected:
        wrong = answered_otherwise(predictions_seen(run), logits)
        metric = load_metric(run.recipe.metrics)
        seen = metric.compute(predictions=predictions_seen(run), references=labels(run))
        if wrong or run.metrics != seen:
            yield Finding(
                expected=f"{expected}",
                observed=f"{run.metrics}",
                hint="Gather with gather_for_metrics: gather counts the rows twice that fill the last batch up.",
            )


@STAGE.check(
    claim("trainer-predict"), fault="predict() does not give logits, labels and metrics of all validation rows."
)
def predict_gives_logits_and_labels(run: Run) -> Iterator[Finding]:
    """predict() gives a logit for each class and one label for each validation row, and metrics."""
    rows, given = len(labels(run)), run.predictions
    expected = {"predictions": (rows, run.recipe.num_labels), "label_ids": (rows,)}
    observed = {"predictions": given.predictions.shape, "label_ids": given.label_ids.shape}
    yield from expect(expected, observed, where="trainer.predict", hint="Predict the validation set.")
    names = ("loss", *scores_of(run.recipe))
    missing = {f"test_{name}" for name in names} - (given.metrics or {}).keys()
    if missing:
        yield Finding(
            expected=f"{', '.join(names)} in metrics",
            observed=f"no {', '.join(sorted(missing))}",
            where="trainer.predict",
            hint="Give Trainer compute_metrics.",
        )


PREDICT_FIELDS = claim("trainer-predict-fields")
PREDICT_FIELDS = replace(PREDICT_FIELDS, expected=tuple(PREDICT_FIELDS.expected))  # as a named tuple has them


@STAGE.check(PREDICT_FIELDS, fault="predict() does not return the three documented fields in their order.")
def predict_gives_three_fields(run: Run) -> Iterator[Finding]:
    """predict() returns a tuple of the three documented fields, in that order."""
    given = run.predictions
    observed = getattr(given, "_fields", ())
    if not isinstance(given, tuple) or observed != PREDICT_FIELDS.expected:
        yield Finding(
            expected=f"a tuple of {', '.join(PREDICT_FIELDS.expected)}",
            observed=f"a {type(given).__name__} of {', '.join(observed) or 'no named fields'}",
            where="trainer.predict",
            hint="Read the fields by name; predictions, labels, metrics = trainer.predict(…) unpacks others.",
        )


@STAGE.check(claim("trainer-logits"), fault="What predict() gives are not the model's logits.")
def predictions_are_logits(run: Run) -> Iterator[Finding]:
    """What predict() gives are the model's logits; their argmax is that of their softmax, the probabilities."""
    batch = next(iter(run.eval_dl))
    expected = evaluated(run, {name: values.to(run.device) for name, values in batch.items()}).logits.float().cpu()
    observed = torch.as_tensor(run.predictions.predictions[: len(expected)])
    same_argmax = torch.equal(observed.softmax(dim=-1).argmax(dim=-1), observed.argmax(dim=-1))
    if observed.shape != expected.shape or not torch.allclose(observed, expected, atol=1e-4) or not same_argmax:
        yield Finding(
            expected=f"{expected[0].tolist()} in row 0",
            observed=f"{observed[0].tolist()}",
            where="trainer.predict",
            hint="Take the argmax of the logits themselves; a softmax before it changes nothing but the numbers.",
        )


@STAGE.check(
    Invariant(
        "saved-model", "The trained model, saved and loaded again, predicts what it predicted in the evaluation."
    ),
    fault="What `save_pretrained` has written gives other logits.",
)
def loads_again(run: Run) -> Iterator[Finding]:
    """What `save_pretrained` writes gives the same logits of the first batch."""
    if not launch.is_main_process():
        return
    batch = {name: values.to(run.device) for name, values in next(iter(run.eval_dl)).items()}
    expected = evaluated(run, batch).logits
    with tempfile.TemporaryDirectory() as folder:
        run.model.save_pretrained(folder)
        loaded, info = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    loaded.to(run.device).eval()
    with torch.no_grad():
        observed = loaded(**batch).logits
    if not torch.allclose(observed, expected, atol=CERTAIN):
        missing = sorted(info["missing_keys"])
        lacks = f"; not in what was saved: {', '.join(missing)}" if missing else ""
        yield Finding(
            expected=f"{expected[0].tolist()} in row 0",
            observed=f"{observed[0].tolist()}{lacks}",
            where="model.save_pretrained",
            hint="Save the trained model itself, with all of its tensors.",
        )


@STAGE.check(RESULT, fault="Accuracy or F1 is further than 0.06 from the documented figures.")
def in_the_documented_ball_park(run: Run) -> Iterator[Finding]:
    """Accuracy and F1 are within 0.06 of the documented figures."""
    yield from outside_the_ball_park(run, RESULT.expected)


@STAGE.check(TRAINER_RESULT, fault="Accuracy or F1 is further than 0.06 from the figures documented for Trainer.")
def trainer_in_the_documented_ball_park(run: Run) -> Iterator[Finding]:
    """Accuracy and F1 are within 0.06 of the figures documented for Trainer."""
    yield from outside_the_ball_park(run, TRAINER_RESULT.expected)


def outside_the_ball_park(run: Run, documented: dict[str, float]) -> Iterator[Finding]:
    run.whole_run_only()
    for name, expected in documented.items():
        observed = run.metrics.get(name, math.nan)
        if not abs(observed - expected) <= BALL_PARK:
            yield Finding(
                expected=f"{name} {expected:.4f} within {BALL_PARK}",
                observed=f"{observed:.4f}",
                hint="Train again with another seed; if it stays there, something that no check sees is wrong.",
            )


@STAGE.check(
    "better-than-majority",
    severity="warning",
    fault="Accuracy is not above that of always answering the most frequent class.",
)
def beats_the_majority_class(run: Run) -> Iterator[Finding]:
    """Accuracy is above that of always answering the most frequent class."""
    run.whole_run_only()
    truth = labels(run)
    floor = max(truth.count(label) for label in range(run.recipe.num_labels)) / len(truth)
    accuracy = run.metrics.get("accuracy", score("accuracy", predictions_seen(run), truth))
    if not accuracy > floor:
        yield Finding(
            expected=f"accuracy above {floor:.4f}",
            observed=f"{accuracy:.4f}",
            hint="The model learned nothing from the text: look at the learning rate, the labels and the checkpoint.",
        )
