from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import MetricCall
from harness.watch.facts.metric_calls import Computed, MetricCalls
from harness.watch.monitor import Monitor


class RowsMissingOrRepeated(Check):
    """A metric is computed from fewer or from more rows than its evaluation has.

    ## Why is this a bug?
    The number that is reported is that of the last batch, of several epochs at once, or of an evaluation in which the
    rows that fill up the last batch of several processes count twice.

    ## What to do
    Give the metric every batch, once; with several processes through gather_for_metrics.

    ## When it is right
    A metric of part of the rows that is no stretch of the evaluation (a class, a language) is not reported, nor is one
    of several forward passes of a batch, as in an ensemble.

    ## References
    - https://github.com/huggingface/accelerate/issues/350
    - https://github.com/huggingface/transformers/issues/30767
    """

    id = "metrics::rows-missing-or-repeated"
    needs = "library's metric over an evaluation"
    formerly = ("metrics::every-row",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.metrics = monitor.fact(MetricCalls)

    def on_metric(self, event: MetricCall) -> None:
        computed = self.metrics.computed
        if computed is None:
            return
        self.looked = True
        if computed.of_several_processes:
            self._look_at_gathered(computed)
            return
        rows, given = len(computed.labels), computed.rows
        if given == rows or (given < rows and not _is_stretch(computed.references, computed.labels)):
            return  # or something of the script's own
        self.found(
            expected=f"{rows} rows, as many as the evaluation has",
            observed=f"{given}, {'fewer' if given < rows else 'more'}",
            where=computed.where,
        )

    def _look_at_gathered(self, computed: Computed) -> None:
        of = computed.of
        whole = len(of.dataset) if hasattr(of.dataset, "__len__") else None
        if whole is None or of.shortened or not of.exhausted or computed.rows in (whole, len(computed.labels)):
            return
        self.found(
            expected=f"{whole} rows, as many as the evaluation has",
            observed=f"{computed.rows}",
            hint="Gather with accelerator.gather_for_metrics, which drops the rows that fill up the last batch.",
            where=computed.where,
        )


def _is_stretch(part: list[int], whole: list[int]) -> bool:
    """Whether ``part`` is a stretch of ``whole``."""
    width = len(part)
    return width > 0 and any(whole[start : start + width] == part for start in range(len(whole) - width + 1))
