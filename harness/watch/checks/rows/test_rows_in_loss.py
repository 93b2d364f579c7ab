from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Scored, Taken
from harness.watch.facts.taken_rows import TakenRows
from harness.watch.monitor import Monitor

MIN_UPDATES = 3
"""Updates in which the same rows of one forward pass were in the loss. A guess."""

MIN_SHARE = 0.5
"""Smallest share of the rows that are evaluated that must have been trained on. A guess: copies of a few rows are in
many datasets."""

MOST_ROWS = 10_000_000


class TestRowsInLoss(Check):
    """Rows that are held out are in the loss: the model is trained on what it is evaluated on.

    ## Why is this a bug?
    A fold that is left out of the wrong list, or a mask of a graph's nodes that has the test nodes in it, teaches the
    model the labels that it is asked for later. The score says how well it remembers them.

    ## What to do
    Take the loss over the training rows alone; make one list of rows for each part, and check that they have none in
    common.

    ## When it is right
    Training rows that are scored beside others are not reported: only rows that the script calls test, validation or
    held out are looked at, where they are not all that the model is trained on. A model that is trained anew on all
    rows, after its settings were chosen, has nothing left to be evaluated on.
    """

    id = "rows::test-rows-in-loss"
    status = "new"
    needs = "rows that are taken by indices, slices or masks and evaluated"
    severity = "warning"
    __test__ = False  # it is no class of pytest's

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.taken = monitor.fact(TakenRows)
        self.in_loss: torch.Tensor | None = None
        """A mask of the rows of a forward pass that were in the loss."""
        self.updates = 0
        self.given: set[int] = set()
        """Where what the model was given for it lies in memory."""
        self.trained: dict[tuple[int, int], torch.Tensor] = {}
        """By the model and the tensor that the rows are of: a mask of those that it was trained on."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.inside_step:
            return
        trained = [each for each in event.forwards if each.gradients]
        for forward in trained:
            for _, rows in self.taken.given(forward):
                if rows.of <= MOST_ROWS:
                    key = self.monitor.number_of(forward.model), rows.source
                    mask = self.trained.get(key)
                    if mask is None or len(mask) != rows.of:
                        mask = self.trained[key] = torch.zeros(rows.of, dtype=torch.bool)
                    mask[rows.numbers] = True
        if self.monitor.is_sampled():
            said = [f.logits for f in trained if f.logits is not None]
            for call in event.losses:
                of_loss = self.taken.of(call.input)
                if of_loss is not None and any(self.taken.is_of(of_loss, each) for each in said):
                    self._keep(of_loss.numbers, of_loss.of)
                elif any(call.input is each for each in said):
                    self._keep(torch.arange(len(call.input)), len(call.input))
                else:
                    continue
                self.given = {t.data_ptr() for f in trained for t in f.tensors.values()}

    def _keep(self, rows: torch.Tensor, of: int) -> None:
        mask = torch.zeros(of, dtype=torch.bool)
        mask[rows] = True
        same = self.in_loss is not None and self.in_loss.shape == mask.shape and torch.equal(self.in_loss, mask)
        self.in_loss, self.updates = mask, self.updates + 1 if same else 1

    def on_taken(self, event: Taken) -> None:
        """Rows of what was said of all are looked at by themselves."""
        if self.in_loss is None or self.updates < MIN_UPDATES or len(event.source) != len(self.in_loss):
            return
        latest = self.monitor.forwards[-1:]
        same = any(t.data_ptr() in self.given for f in latest if not f.gradients for t in f.tensors.values())
        if same and not event.source.requires_grad:
            index = event.index.nonzero().flatten() if event.index.dtype is torch.bool else event.index
            self._judge(index.cpu(), self.in_loss, event.index)

    def on_scored(self, event: Scored) -> None:
        if event.forward.gradients or event.by_row:
            return
        for tensor, rows in self.taken.given(event.forward):
            mask = self.trained.get((self.monitor.number_of(event.forward.model), rows.source))
            if mask is not None and len(mask) == rows.of:
                self._judge(rows.numbers, mask, rows.by, tensor, tensor._base)

    def _judge(self, rows: torch.Tensor, trained: torch.Tensor, *named: torch.Tensor | None) -> None:
        self.looked = True
        both = int(trained[rows].sum())
        if both < MIN_SHARE * len(rows) or both >= int(trained.sum()):
            return
        name = self.taken.held_out(*named)
        if name is not None:
            self.found(
                expected=f"training on other rows than those of {name}",
                observed=f"{both} of its {len(rows)} rows are among the {int(trained.sum())} that were in the loss: "
                "test rows were trained on",
                where=self.monitor.locator.where(),
                update=self.monitor.updates_made,
            )
