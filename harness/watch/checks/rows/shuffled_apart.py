from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.taken_rows import Rows, TakenRows
from harness.watch.monitor import Monitor

MIN_BATCHES = 3
"""Batches in which it must be so. A guess."""


class ShuffledApart(Check):
    """Inputs and labels are taken by different indices, so that rows come with the labels of other rows.

    ## Why is this a bug?
    `x[torch.randperm(n)]` and `y[torch.randperm(n)]` put two orders on what belongs together. The model is taught
    noise: its loss falls to that of guessing and stays there.

    ## What to do
    Draw one permutation, and take both by it: `order = torch.randperm(n); x, y = x[order], y[order]`.

    ## When it is right
    Labels that lie a constant number of rows after their inputs, as in a forecast, and inputs of which any was taken by
    the labels' indices are not reported. Labels that are shuffled to see what a model makes of noise may ignore this
    warning.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.randperm.html
    """

    id = "rows::shuffled-apart"
    status = "new"
    needs = "inputs and labels that are taken by indices"
    in_windows = "first"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.taken = monitor.fact(TakenRows)
        self.batches = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self.monitor.is_sampled() or event.inside_step:
            return
        given = [rows for f in event.forwards if f.gradients for _, rows in self.taken.given(f)]
        labels = [rows for call in event.losses if (rows := self.taken.of(call.target)) is not None]
        pairs = [(one, other) for one in given for other in labels if _are_beside(one, other)]
        if not pairs:
            return
        self.looked = True
        apart = all(_differ(one, other) for one, other in pairs)
        self.batches += apart
        if self.batches == MIN_BATCHES and apart:
            one, other = (rows.numbers[:3].tolist() for rows in pairs[0])
            self.found(
                expected="the labels of the rows that the model is given",
                observed=f"the first rows of the inputs are {one}, and those of their labels {other}: they were "
                "shuffled separately",
                where=event.losses[-1].where,
                update=self.monitor.update,
            )


def _are_beside(one: Rows, other: Rows) -> bool:
    """Whether they are as many rows, taken by indices, of two tensors that have as many."""
    alike = one.of == other.of and len(one.numbers) == len(other.numbers) and one.source != other.source
    return alike and one.by is not None and other.by is not None


def _differ(one: Rows, other: Rows) -> bool:
    distance = one.numbers - other.numbers
    return len(distance) > 1 and bool((distance != distance[0]).any())
