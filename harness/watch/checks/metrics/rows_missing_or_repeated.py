from __future__ import annotations

from dataclasses import dataclass, field

from harness.watch.check import Check
from harness.watch.events import End, MetricCall, Pass
from harness.watch.facts.datasets import base
from harness.watch.facts.metric_calls import Computed, MetricCalls
from harness.watch.monitor import Monitor


@dataclass(eq=False)
class Scores:
    """What the metrics of one evaluation were given, as far as it is rows of it."""

    of: Pass
    labels: list[int]
    given: dict[str, list[int]] = field(default_factory=dict)
    """References, by the metric: those of its first call."""
    in_parts: set[str] = field(default_factory=set)
    """Metrics that were called for one part after the other."""
    part: tuple[str, int, str | None] | None = None
    """The first metric that had fewer rows than there are, how many, and where."""

    def is_repeated_in(self, references: list[int]) -> bool:
        """Whether they are the rows of the whole evaluation, and some of them again."""
        rows = len(self.labels)
        again = references[rows:]
        return references[:rows] == self.labels and 0 < len(again) < rows and _is_stretch(again, self.labels)

    def follows_in(self, references: list[int], earlier: Scores | None) -> bool:
        """Whether they end with the same rows twice, as they were evaluated before and after updates."""
        if earlier is None or earlier.of.updates_before == self.of.updates_before:
            return False
        both = earlier.labels + self.labels
        return references[-len(both) :] == both and base(earlier.of.dataset) == base(self.of.dataset)


class RowsMissingOrRepeated(Check):
    """A metric is computed from fewer or from more rows than its evaluation has.

    ## Why is this a bug?
    The reported number is that of the last batch, of several epochs at once, or of an evaluation in which the rows that
    fill up the last batch of several processes count twice.

    ## What to do
    Give the metric every batch, once; with several processes through gather_for_metrics.

    ## When it is right
    A metric of each batch, or of one part of the rows after the other, is not reported. Neither is one of a part that
    is not a contiguous stretch of the evaluation (a class, a language), or of rows other than the evaluation's: those
    trained on, or those of all folds together. Several forward passes of a batch, as in an ensemble, are not looked at.

    ## References
    - https://github.com/huggingface/accelerate/issues/350
    - https://github.com/huggingface/transformers/issues/30767
    """

    needs = "library's metric over an evaluation"
    formerly = ("metrics::every-row",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.metrics = monitor.fact(MetricCalls)
        self.scores: Scores | None = None
        """Of the latest evaluation."""
        self.earlier: Scores | None = None
        """Of the one before."""

    def on_metric(self, event: MetricCall) -> None:
        computed = self.metrics.computed
        if computed is None:
            return
        self.looked = True
        if computed.of_several_processes:
            self._look_at_gathered(computed)
            return
        if self.scores is None or self.scores.of is not computed.of:
            self._report_part()
            self.earlier, self.scores = self.scores, Scores(computed.of, computed.labels)
        self._look_at(computed, self.scores)

    def on_end(self, event: End) -> None:
        self._report_part()

    def _look_at(self, computed: Computed, scores: Scores) -> None:
        scores.labels = computed.labels
        rows, given, references = len(computed.labels), computed.rows, computed.references
        if not (computed.of.over or computed.of.is_dropped):
            scores.in_parts.add(computed.metric)  # amid the evaluation
        elif given > rows:
            if scores.is_repeated_in(references) or scores.follows_in(references, self.earlier):
                self._rows_are_not(rows, f"{given}, more", computed.where)
        elif given == rows or _is_stretch(references, computed.labels):
            if scores.given.setdefault(computed.metric, references) != references:
                scores.in_parts.add(computed.metric)
            if given < rows:
                scores.part = scores.part or (computed.metric, given, computed.where)

    def _report_part(self) -> None:
        """By now it is known whether the other rows came in further calls."""
        if self.scores is not None and self.scores.part is not None:
            metric, given, where = self.scores.part
            if metric not in self.scores.in_parts:
                self._rows_are_not(len(self.scores.labels), f"{given}, fewer", where)

    def _rows_are_not(self, rows: int, observed: str, where: str | None) -> None:
        self.found(expected=f"{rows} rows, as many as the evaluation has", observed=observed, where=where)

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
    letters = {label: chr(number) for number, label in enumerate(set(whole))}  # to search a text takes no time
    if not part or not letters.keys() >= set(part):
        return False
    return "".join(map(letters.__getitem__, part)) in "".join(map(letters.__getitem__, whole))
