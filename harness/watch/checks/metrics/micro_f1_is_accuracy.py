from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import MetricCall
from harness.watch.facts.metric_calls import MetricCalls
from harness.watch.monitor import Monitor


class MicroF1IsAccuracy(Check):
    """F1 is averaged so that it is the accuracy under another name.

    ## Why is this a bug?
    With one label for each row, every wrong prediction is one false positive and one false negative: precision, recall,
    F1 and accuracy, all averaged over the rows, are the same number. A rare class that is never predicted does not show
    in it.

    ## What to do
    Choose the average that the benchmark reports; right if you know that it is the accuracy.

    ## When it is right
    Some benchmarks ask for micro-averaged F1 by name; report it once, and ignore this warning. If rows have several
    labels, it differs from the accuracy and is not reported.

    ## References
    - https://scikit-learn.org/stable/modules/model_evaluation.html#multiclass-and-multilabel-classification
    - https://github.com/huggingface/datasets/issues/3639
    """

    needs = "library's F1 over an evaluation"
    formerly = ("metrics::tells-apart",)
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.metrics = monitor.fact(MetricCalls)

    def on_metric(self, event: MetricCall) -> None:
        computed = self.metrics.computed
        if computed is None or not computed.comparable:
            return
        self.looked |= "f1" in computed.metric
        if computed.options.get("average") == "micro" and "f1" in computed.metric:
            self.found(
                expected="average='binary' or 'macro'",
                observed="average='micro' makes F1 the accuracy",
                where=computed.where,
            )
