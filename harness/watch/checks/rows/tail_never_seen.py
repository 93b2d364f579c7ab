from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End, Scored
from harness.watch.facts.rows_by_hand import RowsByHand
from harness.watch.monitor import Monitor

MIN_EPOCHS = 3
"""Times that the first row was trained on. Half or double of it changes verdicts (docs/detection.md)."""

MIN_SHARE = 0.02
"""Smallest share of the rows that is worth a word. Neither half nor double of it changes a verdict of the corpus."""


@dataclass(eq=False)
class _Visited:
    """Rows of one tensor that a model was trained on."""

    rows: torch.Tensor
    """A mask."""
    where: str | None
    epochs: int = 0
    longest: int = 0
    """Rows of the largest batch."""


class TailNeverSeen(Check):
    """The last rows are in no batch, in any epoch.

    ## Why is this a bug?
    `for i in range(len(x) // batch)` leaves out the remainder of the division. With another order in each epoch, other
    rows are left out each time; without one, it is always the same rows and, if they are sorted, all rows of a class.

    ## What to do
    Go to the end: `for i in range(0, len(x), batch)`; or draw a new order before each epoch.

    ## When it is right
    Rows that are shuffled before each epoch, and last rows that are evaluated, are not reported. Neither is a remainder
    of less than 2% of all rows, or the end of a text that a language model is trained on.
    """

    status = "new"
    needs = "batches that are slices of one tensor"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.rows = monitor.fact(RowsByHand)
        self.visited: dict[tuple[int, int], _Visited] = {}
        """By the model and the tensor."""
        self.evaluated: dict[int, torch.Tensor] = {}

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.inside_step or event.batch is not None:
            return
        labels = [each for call in event.losses if (each := self.rows.slice_of(call.target)) is not None]
        for forward in event.forwards:
            for tensor in forward.tensors.values() if forward.gradients else ():
                given = self.rows.slice_of(tensor)
                # A language model's labels are slices of its inputs' tensor.
                beside = [each for each in labels if given is not None and each.of == given.of]
                if given is None or not beside or any(each.source == given.source for each in beside):
                    continue
                key = self.monitor.number_of(forward.model), given.source
                seen = self.visited.get(key)
                if seen is None or len(seen.rows) != given.of:
                    seen = self.visited[key] = _Visited(torch.zeros(given.of, dtype=torch.bool), forward.where)
                seen.rows[given.first : given.first + given.rows] = True
                seen.epochs += given.first == 0
                seen.longest = max(seen.longest, given.rows)

    def on_scored(self, event: Scored) -> None:
        for tensor in event.forward.tensors.values():
            given = self.rows.slice_of(tensor)
            if given is not None:
                mask = self.evaluated.setdefault(given.source, torch.zeros(given.of, dtype=torch.bool))
                mask[given.first : given.first + given.rows] = True

    def on_end(self, event: End) -> None:
        if not self.monitor.complete:
            return
        for (_, source), seen in self.visited.items():
            if seen.epochs < MIN_EPOCHS:
                continue
            self.looked = True
            last = int(seen.rows.nonzero().max())
            left = len(seen.rows) - last - 1
            evaluated = self.evaluated.get(source)
            scored = evaluated is not None and bool(evaluated[last + 1 :].any()) and not bool(evaluated.all())
            if bool(seen.rows[: last + 1].all()) and MIN_SHARE * len(seen.rows) <= left < seen.longest and not scored:
                self.found(
                    expected="each row in some batch",
                    observed=f"the last {left} of {len(seen.rows)} rows were never trained on in {seen.epochs} epochs, "
                    f"whose batches are the same {seen.longest} rows each time",
                    where=seen.where,
                )
