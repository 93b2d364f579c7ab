from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, MetricCall, Scored
from harness.watch.monitor import Monitor

FACTOR = 20
"""Times that inputs of an evaluation must be larger, or smaller, than those of training. A guess: pixels of 0 to 255
beside 0 to 1 are 255 times, those that are standardised some 120 times; a test outside the range of training is
seldom 10 times."""

MIN_ROWS = 8
"""Rows that must have been evaluated: by reasoning, fewer are somebody's single question."""

MOST_INPUTS = 64
"""Inputs of models that are kept apart, the first ones. A guess at more than a script has."""

Input = tuple[int, str]
"""The number of a model, and the name of one of its parameters."""


@dataclass(eq=False)
class _Evaluated:
    """Inputs of evaluations, all of another scale."""

    smallest: float
    largest: float
    where: str | None
    update: int
    rows: int = 0


class EvaluatedOnAnotherScale(Check):
    """In evaluation the model is given numbers of another scale than in training.

    ## Why is this a bug?
    A model is fitted to inputs as they were in training. Where these were scaled (pixels divided by 255, columns
    standardised) and those of the evaluation were not, or the other way round, its answers are arbitrary, and the score
    says nothing of the model. Nothing is raised, because the shapes are right.

    ## What to do
    Transform the rows of the evaluation as those of training: the same mean and deviation, measured on the training
    rows, the same division, in one function that both use.

    ## When it is right
    A test of how a model does far outside of what it was trained on, if that is meant. Scales that differ by less than
    20 times are not reported, nor are models that were scored on inputs of the scale of training too, inputs that are
    all 0, masks, whole numbers such as ids of tokens, or outputs that nothing was compared with.

    ## References
    - https://scikit-learn.org/stable/common_pitfalls.html (inconsistent preprocessing)
    """

    id = "inputs::evaluated-on-another-scale"
    severity = "warning"
    needs = "evaluation of numbers that a model was trained on"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained: dict[Input, tuple[float, float]] = {}
        """The smallest and the largest root mean square of a batch."""
        self.evaluated: dict[Input, _Evaluated] = {}
        self.alike: set[Input] = set()
        """Inputs that were of the scale of training in some evaluation, or had none in training."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not self.monitor.is_sampled():
            return
        for forward in event.forwards:
            if forward.number not in event.reached:
                continue
            for key, scale, _ in self._scales(forward):
                low, high = self.trained.get(key, (scale, scale))
                if key in self.trained or len(self.trained) < MOST_INPUTS:
                    self.trained[key] = min(low, scale), max(high, scale)

    def on_forward(self, event: Forward) -> None:
        if event.loss is not None:
            self._score(event)

    def on_scored(self, event: Scored) -> None:
        if not event.by_row:  # which says what is unusual
            self._score(event.forward)

    def on_metric(self, event: MetricCall) -> None:
        for forward in self.monitor.forwards[-1:]:
            self._score(forward)

    def _score(self, forward: Forward) -> None:
        if forward.gradients or not self.trained:
            return
        for key, scale, rows in self._scales(forward):
            low, high = self.trained.get(key, (0.0, 0.0))
            if not low or not scale:
                continue
            self.looked = True
            if low / FACTOR <= scale <= high * FACTOR:
                self.alike.add(key)
                self.evaluated.pop(key, None)
                continue
            seen = self.evaluated.setdefault(key, _Evaluated(scale, scale, forward.where, self.monitor.updates_made))
            seen.smallest, seen.largest = min(seen.smallest, scale), max(seen.largest, scale)
            seen.rows += rows

    def _scales(self, forward: Forward) -> Iterator[tuple[Input, float, int]]:
        model = self.monitor.number_of(forward.model)
        for name, tensor in forward.tensors.items():
            key = model, name
            if key in self.alike or not tensor.is_floating_point() or tensor.dim() < 2 or "mask" in name:
                continue
            scale = float(tensor.detach().float().square().mean().sqrt()) if tensor.numel() else 0.0
            if math.isfinite(scale):
                yield key, scale, len(tensor)

    def on_end(self, event: End) -> None:
        for key, seen in self.evaluated.items():
            if seen.rows < MIN_ROWS:
                continue
            trained = _range(*self.trained[key])
            self.found(
                expected=f"{key[1]} of the scale of training, where its root mean square was {trained}",
                observed=f"a root mean square of {_range(seen.smallest, seen.largest)}",
                where=seen.where,
                update=seen.update,
            )


def _range(low: float, high: float) -> str:
    one, other = f"{low:.3g}", f"{high:.3g}"
    return one if one == other else f"{one} to {other}"
