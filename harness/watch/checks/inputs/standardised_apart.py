from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward
from harness.watch.facts.row_dimension import row_bytes
from harness.watch.monitor import Monitor

MIN_ROWS = 30
"""Rows of an evaluation from which on moments of exactly 0 and 1 are no accident: those of rows that were standardised
with others' differ from them by about 1 / sqrt(rows)."""

EXACT = 2e-3
"""How near to 0 and 1 the moments must be, but for dividing by one row less. By reasoning: far below 1 / sqrt(rows)."""

MIN_COLUMNS, MOST_COLUMNS = 2, 4096
MOST_ROWS = 4096
"""Rows of training that are remembered. Neither half nor double of it changes a verdict of the corpus."""


@dataclass(eq=False)
class _Moments:
    """Of the rows that a model was given between two updates, by column."""

    where: str | None
    total: torch.Tensor
    squares: torch.Tensor
    rows: int = 0
    trained: bool = False
    """Whether some of them were trained on: those are right to have these moments."""
    latest: int = 0
    """The number of the latest forward."""


class StandardisedApart(Check):
    """The rows of the evaluation are standardised by their own mean and deviation, and not by those of training.

    ## Why is this a bug?
    This removes what distinguishes the test rows from the training rows: a cold month becomes an average one. The score
    is that of rows that do not exist, and a single new row could not be transformed at all.

    ## What to do
    Measure mean and deviation on the training rows, and transform all rows with them.

    ## When it is right
    Rows that are standardised with others, or one by one, have different moments and are not reported. Ignore this
    warning if each part is meant to be standardised by itself, such as the recordings of different subjects.

    ## References
    - https://scikit-learn.org/stable/common_pitfalls.html (inconsistent preprocessing)
    """

    status = "new"
    needs = "evaluation of columns of numbers"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained: set[bytes] = set()
        self.evaluated: dict[tuple[int, int], _Moments] = {}
        """By the model, and the pass or the tensor that the rows are of; since the latest update."""
        self.update = 0
        """The updates made by then."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not self.monitor.is_sampled() or len(self.trained) >= MOST_ROWS:
            return
        for forward in event.forwards:
            columns = _columns(forward)
            if columns is not None and forward.number in event.reached:
                self.trained.update(row_bytes(columns))

    def on_forward(self, scored: Forward) -> None:
        columns = _columns(scored)
        if scored.gradients or columns is None or not self.trained:
            return
        of = columns if columns._base is None else columns._base
        rows_of = id(of) if scored.batch is None else id(scored.batch.of)
        if self.monitor.updates_made > self.update:
            self._judge()
            self.update = self.monitor.updates_made
        key = self.monitor.number_of(scored.model), rows_of
        zeros = torch.zeros(columns.shape[1], dtype=torch.float64)
        moments = self.evaluated.setdefault(key, _Moments(scored.where, zeros, zeros))
        if scored.number == moments.latest or moments.trained or moments.total.shape != zeros.shape:
            return
        moments.latest = scored.number
        moments.trained = not self.trained.isdisjoint(row_bytes(columns, MOST_ROWS))
        values = columns.detach().double().cpu()
        moments.total = moments.total + values.sum(0)
        moments.squares = moments.squares + values.square().sum(0)
        moments.rows += len(values)

    def on_end(self, event: End) -> None:
        self._judge()

    def _judge(self) -> None:
        """Of what was evaluated after one update, and let it go."""
        evaluated, self.evaluated = self.evaluated, {}
        for each in evaluated.values():
            if each.rows < MIN_ROWS or each.trained:
                continue
            self.looked = True
            mean = each.total / each.rows
            variance = each.squares / each.rows - mean.square()
            ones = [variance, variance * each.rows / (each.rows - 1)]
            constant = variance < EXACT  # a column that does not vary
            if int((~constant).sum()) < MIN_COLUMNS or bool((mean.abs() > EXACT).any()):
                continue
            if any(bool(((one - 1).abs() <= EXACT)[~constant].all()) for one in ones):
                self.found(
                    expected="rows that are transformed with the moments of the training rows",
                    observed=f"each of {len(mean)} columns has mean 0 and deviation 1 over the {each.rows} rows of the "
                    "evaluation: they were standardised by their own moments",
                    where=each.where,
                    update=self.update,
                )
                return


def _columns(forward: Forward) -> torch.Tensor | None:
    """(rows, columns) of numbers that a model was given alone."""
    given = [tensor for tensor in forward.tensors.values() if tensor.dim()]
    if len(given) != 1 or given[0].dim() != 2 or not given[0].is_floating_point() or given[0].is_meta:
        return None
    return given[0] if MIN_COLUMNS <= given[0].shape[1] <= MOST_COLUMNS else None
