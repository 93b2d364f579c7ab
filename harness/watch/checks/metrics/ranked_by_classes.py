from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.watch.check import Check
from harness.watch.events import RankingCall

MIN_ROWS = 16
"""Rows of which some must have other scores than two: by reasoning, fewer may be somebody's example."""


class RankedByClasses(Check):
    """A metric of a ranking is given predicted classes, and no scores.

    ## Why is this a bug?
    ROC AUC and average precision ask how well scores order the rows. Predicted classes only sort them into two groups:
    the area under a curve of one point is the balanced accuracy at one threshold, which is lower than the model's AUC
    and says nothing about other thresholds.

    ## What to do
    Give the metric probabilities or logits of the positive class, before they are rounded, compared or put through
    argmax.

    ## When it is right
    For a classifier without scores, such as a rule, there is no other number. Fewer than 16 rows are not judged.

    ## References
    - https://scikit-learn.org/stable/modules/generated/sklearn.metrics.roc_auc_score.html
    """

    status = "new"
    needs = "metric of a ranking"

    def on_ranking(self, event: RankingCall) -> None:
        scores, references = _column(event.scores), _column(event.references)
        if len(scores) < MIN_ROWS or any(isinstance(each, list) for each in (*scores, *references)):
            return  # several classes, or several labels of a row
        if not self.monitor.forwards:
            return  # no network of this script said them
        self.looked = True
        values = set(scores)
        if (len(values) == 2 or values <= {0, 1}) and len(set(references)) == 2:
            self.found(
                expected="a score for each row",
                observed=f"{event.metric} is given {len(scores)} rows with no other value than "
                + " and ".join(f"{value:g}" for value in sorted(values)),
                where=event.where,
                update=self.monitor.updates_made,
            )


def _column(values: Sequence[Any]) -> list[Any]:
    """The numbers, also of rows with one number each."""
    return [each[0] if isinstance(each, list) and len(each) == 1 else each for each in values]
