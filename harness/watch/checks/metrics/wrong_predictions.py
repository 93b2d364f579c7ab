from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import LossCall, MetricCall
from harness.watch.facts.metric_calls import Computed, MetricCalls
from harness.watch.monitor import Monitor


class WrongPredictions(Check):
    """A metric is given other classes than those that the model finds likeliest.

    ## Why is this a bug?
    What is measured is not the model. An argmax over the wrong dimension, the least likely class, the labels in place
    of the predictions, or predictions that another model made: a number comes out, and it says nothing.

    ## What to do
    Take the argmax over the classes, of the logits of the same forward pass.

    ## When it is right
    Predictions that some threshold between two classes explains, or some number added to the logits of each class, are
    not reported: rare classes are often made likelier on purpose. Neither are predictions of an earlier evaluation of
    the same rows (the best epoch's), or of several together (an ensemble): if all evaluations agree on a row's class,
    so do these. Outputs whose width differs from the input of `cross_entropy` or `nll_loss` are features and not looked
    at.
    """

    needs = "library's metric over an evaluation"
    formerly = ("metrics::of-the-predictions",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.metrics = monitor.fact(MetricCalls)
        self.classes: set[int] = set()
        """Numbers of classes that a loss was computed from the logits of."""

    def on_loss(self, event: LossCall) -> None:
        if event.function in ("cross_entropy", "nll_loss") and event.input.dim() == 2:
            self.classes.add(event.input.shape[1])

    def on_metric(self, event: MetricCall) -> None:
        computed = self.metrics.computed
        if computed is None or not computed.comparable or computed.references != computed.labels:
            return
        if computed.logits.shape[1] not in self.classes:
            return  # features, from which something else predicts
        self.looked = True
        predictions, best = computed.predictions, computed.best
        if computed.in_another_order or computed.by_threshold or not _differ_where_evaluations_agree(computed):
            return
        wrong = sum(one != other for one, other in zip(predictions, best, strict=True))
        self.found(
            expected="logits.argmax(dim=-1) of each row",
            observed=f"{wrong} of {computed.rows} predictions are another class, and no threshold explains them",
            where=computed.where,
        )


def _differ_where_evaluations_agree(computed: Computed) -> bool:
    """Whether any row has another class than the one that was likeliest in all evaluations of it."""
    agreed = computed.best if computed.agreed is None else computed.agreed.tolist()
    rows = zip(computed.predictions, computed.best, agreed, strict=True)
    return any(prediction != best == always for prediction, best, always in rows)
