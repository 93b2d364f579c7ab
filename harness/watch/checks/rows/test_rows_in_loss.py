from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Scored
from harness.watch.facts.rows_by_hand import RowsByHand
from harness.watch.monitor import Monitor

MIN_UPDATES = 3
"""Updates in which rows that are held out had a gradient. Neither half nor double of it changes a verdict of the
corpus."""

MIN_SHARE = 0.5
"""Smallest share of the rows that are held out that must have been trained on. Copies of a few rows are in many
datasets. Half or double of it changes verdicts (docs/detection.md)."""

MIN_ROWS = 8


class TestRowsInLoss(Check):
    """Rows that are held out are in the loss: the model is trained on what it is evaluated on.

    ## Why is this a bug?
    A fold that is left out of the wrong list, or a mask of a graph's nodes that includes the test nodes, teaches the
    model the labels that it is asked for later. The score says how well it remembers them.

    ## What to do
    Take the loss over the training rows alone; make one list of rows for each part, and check that they have none in
    common.

    ## When it is right
    Training rows that are scored along with others are not reported: the check looks only at rows that the script calls
    test, validation or held out, and only if they are not all that the model is trained on. Rows are recognised by
    their content, and not looked at if one of them comes twice in a batch. A model that is retrained on all rows, after
    its settings were chosen, has nothing left to be evaluated on.
    """

    status = "new"
    needs = "rows without a DataLoader that the script calls test, validation or held out"
    __test__ = False  # it is no class of pytest's

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.rows = monitor.fact(RowsByHand)
        self.updates: dict[str, int] = {}
        """In which rows of a mask had a gradient, by its name."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.batch is not None or event.inside_step or not self.monitor.is_sampled():
            return
        said = [f.logits for f in event.forwards if f.gradients and f.logits is not None and f.logits.dim() == 2]
        if len(said) != 1 or len(said[0]) < MIN_ROWS or said[0].is_leaf:
            return
        masks = {name: each for name, each in self.rows.held_out() if _is_mask(each, len(said[0]))}
        if masks:
            self.looked = True
            judge = self.monitor.guarded(self, self._judging(masks, event.where))
            said[0].register_hook(judge)  # type: ignore[no-untyped-call]

    def _judging(self, masks: dict[str, torch.Tensor], where: str | None) -> Callable[[torch.Tensor], None]:
        """Told of the gradient of what was said of all rows: the rows in the loss are those that have one."""

        def judge(gradient: torch.Tensor) -> None:
            in_loss = (gradient.detach() != 0).any(1).cpu()
            for name, mask in masks.items():
                both, rows = int((mask.cpu() & in_loss).sum()), int(mask.sum())
                if not rows or both < MIN_SHARE * rows or both >= int(in_loss.sum()):
                    continue
                self.updates[name] = self.updates.get(name, 0) + 1
                if self.updates[name] == MIN_UPDATES:
                    self._report(name, both, rows, int(in_loss.sum()), where)

        return judge

    def on_scored(self, event: Scored) -> None:
        forward = event.forward
        number = self.monitor.number_of(forward.model)
        trained = self.rows.trained.get(number)
        if not trained or number in self.rows.alike or forward.gradients or forward.batch is not None or event.by_row:
            return
        keys = self.rows.keys(forward)
        if keys is None or len(keys) < MIN_ROWS or len(set(keys)) < len(keys):
            return
        both = sum(key in trained for key in keys)
        if both < MIN_SHARE * len(keys) or both >= len(trained):
            self.looked |= any(_may_be(value, len(keys), forward.tensors) for _, value in self.rows.held_out())
            return
        name = next((name for name, value in self.rows.held_out() if _may_be(value, len(keys), forward.tensors)), None)
        if name is not None:
            self._report(name, both, len(keys), len(trained), self.monitor.locator.where())

    def _report(self, name: str, both: int, rows: int, trained: int, where: str | None) -> None:
        self.found(
            expected=f"training on other rows than those of {name}",
            observed=f"{both} of its {rows} rows are among the {trained} that were in the loss: test rows were trained "
            "on",
            where=where,
            update=self.monitor.update,
        )


def _is_mask(value: Any, rows: int) -> bool:
    return torch.is_tensor(value) and value.dtype is torch.bool and value.shape == (rows,)


def _may_be(value: Any, rows: int, given: dict[str, torch.Tensor]) -> bool:
    """Whether it is what the model was given, or numbers of as many rows."""
    if any(value is each or value is each._base for each in given.values()):
        return True
    if torch.is_tensor(value) and value.dim() == 1 and value.dtype is torch.bool:
        return int(value.sum()) == rows
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    whole = kind == "i" or (torch.is_tensor(value) and value.dtype is torch.int64)
    return whole and value.ndim == 1 and len(value) == rows
