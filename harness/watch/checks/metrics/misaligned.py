from __future__ import annotations

from collections import Counter

from harness.watch.check import Check
from harness.watch.events import MetricCall
from harness.watch.facts.metric_calls import Computed, MetricCalls
from harness.watch.monitor import Monitor


class Misaligned(Check):
    """A metric compares predictions with the references of other rows.

    ## Why is this a bug?
    Each prediction is compared with the label of another row, so the result is about what guessing would give, however
    good the model is. Swapped arguments are harder to see: the accuracy stays the same, while precision and recall
    change places and F1 of several classes changes.

    ## What to do
    Collect both from the same batch, in the same order: metric(predictions=..., references=...).

    ## When it is right
    Shuffled evaluations are not reported if predictions and references are shuffled together.
    """

    needs = "library's metric over an evaluation"
    formerly = ("metrics::aligned",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.metrics = monitor.fact(MetricCalls)

    def on_metric(self, event: MetricCall) -> None:
        computed = self.metrics.computed
        self.looked |= computed is not None and computed.comparable
        observed = None if computed is None or not computed.comparable else _misaligned(computed)
        if observed is not None:
            self.found(
                expected="the prediction and the reference of one row at the same place",
                observed=observed,
                where=event.where,
            )


def _misaligned(computed: Computed) -> str | None:
    """What is in whose place; None where all is in its own."""
    predictions, references, labels, best = computed.predictions, computed.references, computed.labels, computed.best
    if references == best and predictions == labels and best != labels:
        return "predictions and references are given in each other's place"
    if references != labels and Counter(references) == Counter(labels) and predictions == best:
        return "the references are in another order than the predictions"
    if references == labels and computed.in_another_order:
        return "the predictions are in another order than the references"
    return None
