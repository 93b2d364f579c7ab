from __future__ import annotations

import math
from weakref import WeakKeyDictionary

from harness.watch.check import Check
from harness.watch.events import SchedulerStep, Scored
from harness.watch.facts.evaluations import Evaluations, Result
from harness.watch.monitor import Monitor

ROUNDED = 1e-4
"""Largest difference of an accuracy that was rounded before it was given. Four digits are usual. Neither half nor
double of it changes a verdict of the corpus."""

CLOSE = 0.02
"""Largest difference, as a share, of a loss that was averaged over batches of unequal size. Neither half nor double of
it changes a verdict of the corpus."""

MOST_BATCHES = 4096
"""Comparisons after one update that are counted: more than an evaluation has."""

ENOUGH = 2
"""Different values that must be known for what they are. By reasoning: one may be another number by chance."""


class PlateauWrongMode(Check):
    """ReduceLROnPlateau waits for the wrong direction: it takes getting better for getting worse.

    ## Why is this a bug?
    `ReduceLROnPlateau` lowers the learning rate when its metric has not decreased for some epochs. That is right for a
    loss. An accuracy rises while the model learns, so in the default mode each epoch that improves counts as a bad one,
    and the learning rate falls in the middle of the training until it changes nothing.

    ## What to do
    Say in which direction the number gets better: mode="max" for an accuracy, mode="min" for a loss.

    ## When it is right
    An error rate (1 - accuracy) or a negative loss is another number, and is not reported. Numbers that are neither the
    accuracy nor the loss of the latest evaluation are not judged.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html
    """

    needs = "ReduceLROnPlateau that is stepped after an evaluation"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.evaluations = monitor.fact(Evaluations)
        self.known: WeakKeyDictionary[object, set[float]] = WeakKeyDictionary()
        """Of each scheduler, the values that were of the wrong kind for its mode."""
        self.agreed: list[tuple[int, int]] = []
        """Of the comparisons of what the model says since the latest update: how many agree, and of how many."""
        self.agreed_at = -1

    def on_scored(self, event: Scored) -> None:
        if event.agrees is None or not any(hasattr(each, "mode") for each in self.monitor.schedulers):
            return
        if self.agreed_at != self.monitor.updates_made:
            self.agreed, self.agreed_at = [], self.monitor.updates_made
        if len(self.agreed) < MOST_BATCHES:
            self.agreed.append((int(event.agrees.sum()), event.agrees.numel()))

    def _is_share_that_agrees(self, value: float) -> bool:
        """Whether it is an accuracy that the script computed by hand, of one comparison or of all."""
        if self.agreed_at != self.monitor.updates_made:
            return False
        in_all = tuple(sum(counts) for counts in zip(*self.agreed, strict=True))
        shares = {right / of for right, of in (*self.agreed, in_all) if 0 < right < of}
        return any(abs(value - share) <= ROUNDED or abs(value - 100 * share) <= 100 * ROUNDED for share in shares)

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        value, mode = event.metric, getattr(event.scheduler, "mode", None)
        if value is None or mode not in ("min", "max"):
            return
        now = [each for each in self.evaluations.history[-3:] if each.updates_made == self.monitor.updates_made]
        by_hand = self.agreed_at == self.monitor.updates_made
        self.looked |= bool(now) or by_hand
        is_wrong = _is_accuracy if mode == "min" else _is_loss
        if not any(is_wrong(value, each) for each in now) and not (mode == "min" and self._is_share_that_agrees(value)):
            return
        known = self.known.setdefault(event.scheduler, set())
        if len(known) < ENOUGH:
            known.add(value)
        if len(known) == ENOUGH:
            what, right = ("accuracy", "max") if mode == "min" else ("loss", "min")
            self.found(
                expected=f'mode="{right}" for the {what} of the evaluation',
                observed=f'mode="{mode}", and it is given the {what}: {value:.4g}',
                where=self.monitor.schedulers.get(event.scheduler) or event.where,
                update=self.monitor.updates_made,
                hint=f'Make it with mode="{right}".',
            )


def _is_accuracy(value: float, of: Result) -> bool:
    same = abs(value - of.accuracy) <= ROUNDED or abs(value - 100 * of.accuracy) <= 100 * ROUNDED
    return same and not math.isclose(value, of.loss, rel_tol=CLOSE)


def _is_loss(value: float, of: Result) -> bool:
    return math.isclose(value, of.loss, rel_tol=CLOSE) and not math.isclose(value, of.accuracy, rel_tol=2 * CLOSE)
