"""Moments: the mean and the deviation of the columns of numbers that a model is evaluated on after one update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, End, Fact, Forward
from harness.watch.facts.row_dimension import row_bytes

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MIN_COLUMNS, MOST_COLUMNS = 2, 4096

MOST_ROWS = 4096
"""Rows of training that are remembered. Neither half nor double of it changes a verdict of the corpus."""


@dataclass(eq=False)
class Moments:
    """Of the rows that a model was given between two updates, by column."""

    where: str | None
    total: torch.Tensor
    squares: torch.Tensor
    rows: int = 0
    trained: bool = False
    """Whether some of them were trained on: those are right to have these moments."""
    latest: int = 0
    """The number of the latest forward."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentsEvaluated(Fact):
    """What was evaluated after one update is over, and a model was trained on rows of numbers before."""

    needs = "evaluation of columns of numbers"
    of_run = True
    inputs: Sequence[Moments]
    """By model, and by what the rows are of."""
    update: int = 0


class EvaluatedMoments(Recogniser):
    makes = (MomentsEvaluated,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._trained: set[bytes] = set()
        self._evaluated: dict[tuple[int, int], Moments] = {}
        """By the model, and the pass or the tensor that the rows are of; since the latest update."""
        self._update = 0
        """The updates made by then."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not event.at.sampled or len(self._trained) >= MOST_ROWS:
            return
        for forward in event.forwards:
            columns = _columns(forward)
            if columns is not None and forward.number in event.reached:
                self._trained.update(row_bytes(columns))

    def on_forward(self, scored: Forward) -> None:
        columns = _columns(scored)
        if scored.gradients or columns is None or not self._trained:
            return
        of = columns if columns._base is None else columns._base
        rows_of = id(of) if scored.batch is None else id(scored.batch.of)
        if scored.at.updates_made > self._update:
            self._close()
            self._update = scored.at.updates_made
        key = self.monitor.number_of(scored.model), rows_of
        zeros = torch.zeros(columns.shape[1], dtype=torch.float64)
        moments = self._evaluated.setdefault(key, Moments(scored.where, zeros, zeros))
        if scored.number == moments.latest or moments.trained or moments.total.shape != zeros.shape:
            return
        moments.latest = scored.number
        moments.trained = not self._trained.isdisjoint(row_bytes(columns, MOST_ROWS))
        values = columns.detach().double().cpu()
        moments.total = moments.total + values.sum(0)
        moments.squares = moments.squares + values.square().sum(0)
        moments.rows += len(values)

    def on_end(self, event: End) -> None:
        self._close()

    def _close(self) -> None:
        """Tell what was evaluated after one update, and let it go."""
        evaluated, self._evaluated = self._evaluated, {}
        if evaluated:
            self.tell(MomentsEvaluated(inputs=list(evaluated.values()), update=self._update))


def _columns(forward: Forward) -> torch.Tensor | None:
    """(rows, columns) of numbers that a model was given alone."""
    given = [tensor for tensor in forward.tensors.values() if tensor.dim()]
    if len(given) != 1 or given[0].dim() != 2 or not given[0].is_floating_point() or given[0].is_meta:
        return None
    return given[0] if MIN_COLUMNS <= given[0].shape[1] <= MOST_COLUMNS else None
