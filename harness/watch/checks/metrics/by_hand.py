"""Metrics that a script computes from what a model said without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.findings import between
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.metrics.observations.answers import (
    MIN_ROWS,
    LabelsCompared,
    LogitsThresholded,
    PredictionsInPairs,
    Ranked,
    scale_of,
)
from harness.watch.events import Scored

LABEL_SCALE_FACTOR = 8
"""Times that labels must be larger, or smaller, in the evaluation than in training. Rows of a test are seldom so far
from those of training, and units that were not undone make more."""

MIN_RANKED = 16
"""Rows of which some must have other scores than two: by reasoning, fewer may be somebody's example."""

PROBABILITY = 0.5
"""The threshold of which it is certain that a probability is meant."""


class Broadcast(Check):
    """Predictions and labels have different shapes, so a metric compares each prediction with every label.

    ## Why is this a bug?
    Predictions of shape (50, 1) and labels of shape (50,) are broadcast to (50, 50). The mean over them is about what
    guessing with the classes' frequencies would give, however good the model is; nothing warns.

    ## What to do
    Give both the same shape before you compare them: predictions.squeeze(-1), or argmax without keepdim.

    ## When it is right
    All-pairs comparisons that have nothing to do with a model's latest predictions, such as labels with labels, are not
    reported.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    """

    needs = "comparison of what a model said without a graph"

    def judge(self, event: Scored) -> Verdict:
        logits = event.forward.logits
        return NOTHING_TO_JUDGE if logits is None or len(logits) < MIN_ROWS else HELD

    def judge_pairs(self, fact: PredictionsInPairs) -> Verdict:
        shapes = f"predictions of shape {tuple(fact.predictions)}"
        return Found(
            expected=f"predictions of the same shape as the labels, {tuple(fact.labels)}",
            observed=f"{shapes}, which the subtraction broadcasts: every label is subtracted from each prediction"
            if fact.sign == "-"
            else f"{shapes}, which the comparison {fact.sign} broadcasts: each prediction is compared with every label",
        )


class LabelsOnAnotherScale(Check):
    """Predictions are compared with labels on a different scale from the training labels.

    ## Why is this a bug?
    A model that was trained on standardised labels, or on their logarithms, answers in those units. Its error against
    labels in the original units answers another question, and is so large or small that it means nothing.

    ## What to do
    Undo the scaling of the predictions, `prediction * std + mean`, with the same numbers that scaled the training
    labels; or scale the evaluation labels in the same way.

    ## When it is right
    Predictions that were converted back, by a product, a sum or an exponential, are not reported: only the model's own
    output is looked at. Neither are labels whose scale differs by less than a factor of 8, or a model whose answers are
    also on that scale, because it scales by its inputs.

    ## References
    - https://scikit-learn.org/stable/modules/compose.html (transforming the target in regression)
    """

    since = "0.3.0"

    def judge(self, fact: LabelsCompared) -> Verdict:
        if fact.labels is None:
            return HELD
        low, high = fact.trained
        scale = scale_of(fact.labels)
        outside = scale > LABEL_SCALE_FACTOR * high or scale < low / LABEL_SCALE_FACTOR
        if not outside or not low / LABEL_SCALE_FACTOR <= scale_of(fact.predicted) <= LABEL_SCALE_FACTOR * high:
            return HELD  # what it says is of another scale than training, too
        return Found(
            expected=f"labels on the training scale, where their root mean square was {between(low, high)}",
            observed=f"the model's raw output is compared with labels whose root mean square is {scale:.3g}: "
            "the scaling of the training labels is not undone",
            update=fact.at.updates_made,
        )


class RankedByClasses(Check):
    """A ranking metric is given predicted classes instead of scores.

    ## Why is this a bug?
    ROC AUC and average precision ask how well scores order the rows. Predicted classes only sort them into two groups:
    the area under a curve of one point is the balanced accuracy at one threshold, which is lower than the model's AUC
    and says nothing about other thresholds.

    ## What to do
    Give the metric the probabilities or logits of the positive class, without rounding, threshold or argmax.

    ## When it is right
    For a classifier without scores, such as a rule, there is no other number. Fewer than 16 rows are not judged.

    ## References
    - https://scikit-learn.org/stable/modules/generated/sklearn.metrics.roc_auc_score.html
    """

    new_since = "0.3.0"

    def judge(self, fact: Ranked) -> Verdict:
        scores, references = _column(fact.scores), _column(fact.references)
        if len(scores) < MIN_RANKED or any(isinstance(each, list) for each in (*scores, *references)):
            return NOTHING_TO_JUDGE  # several classes, or several labels of a row
        values = set(scores)
        if (len(values) != 2 and not values <= {0, 1}) or len(set(references)) != 2:
            return HELD
        return Found(
            expected="a score for each row, such as a probability",
            observed=f"{fact.metric} is given {len(scores)} rows whose only values are "
            + " and ".join(f"{value:g}" for value in sorted(values)),
            update=fact.at.updates_made,
        )


class ThresholdOfProbabilities(Check):
    """Logits are compared with 0.5, which is a threshold for probabilities.

    ## Why is this a bug?
    A model that is trained with `binary_cross_entropy_with_logits` outputs logits, from minus to plus infinity, and a
    probability of one half is a logit of 0. If logits are compared with 0.5, rows count as positive only from a
    probability of 0.62: positives are missed, and accuracy, recall and F1 are those of another decision.

    ## What to do
    Compare probabilities with 0.5, torch.sigmoid(logits) > 0.5, or compare the logits with 0.

    ## When it is right
    When a threshold of 0.5 was chosen for logits, on validation data. Other thresholds are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    new_since = "0.3.0"
    explains = ("metrics::other-than-named",)

    def judge(self, fact: LogitsThresholded) -> Verdict:
        if fact.threshold != PROBABILITY:
            return HELD
        return Found(
            expected="a threshold for logits, such as 0",
            observed="the raw logits are compared with 0.5",
            update=fact.at.updates_made,
        )


def _column(values: Sequence[Any]) -> list[Any]:
    """The numbers, also of rows with one number each."""
    return [each[0] if isinstance(each, list) and len(each) == 1 else each for each in values]
