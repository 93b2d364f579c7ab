from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import MetricCall
from harness.watch.facts.metric_calls import MetricCalls
from harness.watch.monitor import Monitor


class WrongPredictions(Check):
    """A metric is given other classes than those that the model finds likeliest.

    ## Why is this a bug?
    What is measured is not the model. An argmax over the wrong dimension, the least likely class, the labels in place
    of the predictions, or predictions that another model made: the number comes out, and says nothing.

    ## What to do
    Take the argmax over the classes, of the logits of the same forward pass.

    ## When it is right
    Where a model has two classes, predictions that any threshold explains are not reported: another threshold than the
    middle is often chosen on purpose.
    """

    id = "metrics::wrong-predictions"
    needs = "library's metric over an evaluation"
    formerly = ("metrics::of-the-predictions",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.metrics = monitor.fact(MetricCalls)

    def on_metric(self, event: MetricCall) -> None:
        computed = self.metrics.computed
        if computed is None or not computed.comparable or computed.references != computed.labels:
            return
        self.looked = True
        predictions, best = computed.predictions, computed.best
        if predictions == best or computed.in_another_order or computed.by_threshold:
            return
        wrong = sum(one != other for one, other in zip(predictions, best, strict=True))
        self.found(
            expected="logits.argmax(dim=-1) of each row",
            observed=f"{wrong} of {computed.rows} predictions are another class, and no threshold explains them",
            where=computed.where,
        )
