"""Thresholds that a script tries on an evaluation, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.watch.bounded import LatestByKey
from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.events import End, MetricCall

MIN_TRIED = 10
"""Different predictions for the same labels, each of a higher or lower threshold than the one before. By reasoning:
whoever compares thresholds to choose one tries ten or more, and few models are compared that differ so."""

MIN_SCORED = 8
"""Rows that must be scored."""


class ThresholdFromScoredRows(Check):
    """The threshold is chosen by the labels of the rows on which the score is then reported.

    ## Why is this a bug?
    The best of a hundred thresholds on these rows is the best for these rows, noise included. The score says how well
    the threshold fits them, not how well the model does on new rows; with few positive rows, F1 rises by several
    points.

    ## What to do
    Choose the threshold on the validation rows, and score the test rows once, with that threshold.

    ## When it is right
    Nothing is reported if other rows are scored after that, or if it is not the best threshold that is scored last.
    Ignore this warning if you say that the threshold is the best one for these rows. Only metrics of scikit-learn and
    Evaluate are seen.

    ## References
    - https://scikit-learn.org/stable/modules/classification_threshold.html
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "thresholds that are tried on an evaluation"

    def begin(self) -> None:
        self._tried = LatestByKey[tuple[str | None, int], _Tried]()
        """By the line of the metric and the labels."""
        self._calls = 0
        self._latest = _Scored()

    def on_metric_call(self, event: MetricCall) -> None:
        if not event.whole or len(event.predictions) != len(event.references) or len(event.references) < MIN_SCORED:
            return
        if not all(isinstance(each, (int, float)) for each in (*event.predictions, *event.references)):
            return
        if not {*event.predictions, *event.references} <= {0, 1}:
            return
        self._calls += 1
        labels, predictions = hash(tuple(event.references)), hash(tuple(event.predictions))
        tried = self._tried.setdefault((event.where, labels), _Tried(event.where))
        if tried.updates != event.at.updates_made:  # another model
            tried.seen.clear()
            tried.updates, tried.before, tried.elsewhere = event.at.updates_made, (), False
        if tried.is_another(event.predictions, predictions):
            tried.latest = self._calls
            tried.elsewhere = False
            if isinstance(event.value, (int, float)):
                tried.seen[predictions] = float(event.value)
        else:
            for other, each in self._tried.items():
                each.elsewhere = each.elsewhere or other[1] != labels
            self._latest = _Scored(self._calls, labels, predictions, event.where)

    def on_end(self, event: End) -> None:
        several = [(labels, each) for (_, labels), each in self._tried.items() if len(each.seen) >= MIN_TRIED]
        for labels, tried in several:
            latest = self._latest
            best = max(tried.seen.values())
            chosen = latest.call > tried.latest and latest.labels == labels and not tried.elsewhere
            chosen = chosen and tried.seen.get(latest.predictions) == best
            self.says(self.judge(len(tried.seen), chosen), latest.where if chosen else tried.where)

    @staticmethod
    def judge(tried: int, chosen: bool) -> Verdict:
        """Thresholds that were tried on rows, and whether these rows, with one of those, are what is scored last."""
        if tried < MIN_TRIED:
            return NOTHING_TO_JUDGE
        if not chosen:
            return Held(f"{tried} thresholds were tried on rows that are not those scored last with one of them")
        return Found(
            expected="a threshold that was chosen on other rows than those that are scored",
            observed=f"{tried} thresholds were tried on the labels of these rows, and the score is that of one of them",
        )


@dataclass(frozen=True)
class _Scored:
    """A call that tries nothing."""

    call: int = 0
    """Counted from 1."""
    labels: int = 0
    predictions: int = 0
    where: str | None = None


@dataclass
class _Tried:
    """Predictions for the same labels in one line."""

    where: str | None
    latest: int = 0
    """The call that tried one last."""
    seen: dict[int, float] = field(default_factory=dict)
    """By their predictions, the score."""
    before: Sequence[Any] = ()
    updates: int = -1
    """Made before."""
    elsewhere: bool = False
    """Whether other rows were scored since."""

    def is_another(self, predictions: Sequence[Any], key: int) -> bool:
        """Whether they are those of another threshold than before, or of the same one again, in a row."""
        alike = list(predictions) == list(self.before)
        if key in self.seen and not alike:
            return False
        pairs = list(zip(self.before, predictions, strict=False))
        nested = all(one <= two for one, two in pairs) or all(one >= two for one, two in pairs)
        if not nested:
            self.seen.clear()
        self.seen.setdefault(key, 0.0)
        self.before = predictions
        return alike or len(self.seen) > 1
