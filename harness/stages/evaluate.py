"""Evaluate: accuracy and F1 on the validation set (document "The evaluation loop")."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from harness.claims import CLAIMS
from harness.findings import Finding
from harness.loops import plain
from harness.metrics import load_metric
from harness.stages.chain import Run, Stage, first_difference
from harness.watch.trace import Trace, row_key

STAGE = Stage("evaluate")

BALL_PARK = 0.06
"""How far from the documented figures is still their ball park: 2.5 standard deviations of five published MRPC seeds of
bert-base-uncased (transformers issue 346: accuracy 0.792 to 0.846, standard deviation 0.025)."""


@STAGE.step
def evaluate(run: Run) -> None:
    metric = load_metric()
    with Trace(run.model, metric=metric) as run.evaluation:
        run.metrics = plain.evaluate(run.model, run.eval_dataloader, metric, run.device)


def predictions_seen(run: Run) -> list[int]:
    """The argmax of the logits of every row that the model was shown."""
    return [prediction for forward in run.evaluation.forwards for prediction in forward.predictions]


def labels(run: Run) -> list[int]:
    """The raw validation labels."""
    return list(run.raw_datasets["validation"][run.recipe.label_column])


@STAGE.check("eval-mode")
def evaluates_in_eval_mode(run: Run) -> Iterator[Finding]:
    """Every module is in eval mode in every forward of the evaluation."""
    wrong = [forward for forward in run.evaluation.forwards if not forward.evaluating]
    if wrong:
        yield Finding(
            expected="every module in eval mode",
            observed=f"{len(wrong)} of {len(run.evaluation.forwards)} batches with modules in train mode",
            hint="Call model.eval() before the evaluation loop: dropout makes the predictions random.",
        )


@STAGE.check("no-grad")
def computes_no_gradients(run: Run) -> Iterator[Finding]:
    """No forward of the evaluation builds a graph for gradients."""
    wrong = [forward for forward in run.evaluation.forwards if forward.gradients]
    if wrong:
        yield Finding(
            expected="outputs that need no gradient",
            observed=f"{len(wrong)} of {len(run.evaluation.forwards)} batches with gradients",
            hint="Wrap the forward in torch.no_grad(): the graph of every batch costs memory and time.",
        )


@STAGE.check("whole-validation-set")
def sees_each_row_once_in_order(run: Run) -> Iterator[Finding]:
    """The model is shown each validation row once, in order, with its own label."""
    rows = run.model_datasets["validation"].with_format(None)
    expected = list(map(row_key, rows["input_ids"], rows["labels"]))
    observed = [row for forward in run.evaluation.forwards for row in forward.rows]
    wrong = first_difference(observed, expected)
    if wrong is not None:
        yield Finding(
            expected=f"{len(expected)} rows, each once, in order",
            observed=f"{len(observed)} rows, the first difference at row {wrong}",
            where="split validation",
            hint="Go through the whole eval_dataloader once, without shuffle and drop_last.",
        )


@STAGE.check("argmax")
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


@STAGE.check("add-batch")
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


@STAGE.check("labels-untouched")
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


@STAGE.check("metric-values")
def metric_is_right(run: Run) -> Iterator[Finding]:
    """Accuracy and F1 are those of the model's own predictions on the raw labels, and there is no other score."""
    # Counted here on its own, from precision and recall: the metric's code must not vouch for itself.
    pairs = Counter(zip(predictions_seen(run), labels(run), strict=False))
    right, found, missed, wrongly = pairs[0, 0] + pairs[1, 1], pairs[1, 1], pairs[0, 1], pairs[1, 0]
    precision, recall = (found / max(1, found + others) for others in (wrongly, missed))
    expected = {
        "accuracy": right / max(1, pairs.total()),
        "f1": 2 * precision * recall / (precision + recall) if found else 0.0,
    }
    same = run.metrics.keys() == expected.keys() and all(
        math.isclose(run.metrics[name], value, rel_tol=1e-12) for name, value in expected.items()
    )
    if not same:
        yield Finding(
            expected=f"{expected}",
            observed=f"{run.metrics}",
            hint="Compute the metric once, after the last batch, from the predictions of this model.",
        )


@STAGE.check("ball-park")
def in_the_documented_ball_park(run: Run) -> Iterator[Finding]:
    """Accuracy and F1 are within 0.06 of the documented figures."""
    run.whole_run_only()
    for name, expected in CLAIMS["ball-park"].expected.items():
        observed = run.metrics.get(name, math.nan)
        if not abs(observed - expected) <= BALL_PARK:
            yield Finding(
                expected=f"{name} {expected:.4f} within {BALL_PARK}",
                observed=f"{observed:.4f}",
                hint="Train again with another seed; if it stays there, something that no check sees is wrong.",
            )


@STAGE.check("better-than-majority", severity="warning")
def beats_the_majority_class(run: Run) -> Iterator[Finding]:
    """Accuracy is above that of always answering the more frequent class."""
    run.whole_run_only()
    truth = labels(run)
    floor = max(truth.count(label) for label in range(run.recipe.num_labels)) / len(truth)
    if not run.metrics["accuracy"] > floor:
        yield Finding(
            expected=f"accuracy above {floor:.4f}",
            observed=f"{run.metrics['accuracy']:.4f}",
            hint="The model learned nothing from the text: look at the learning rate, the labels and the checkpoint.",
        )
