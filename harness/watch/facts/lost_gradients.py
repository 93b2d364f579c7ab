"""Lost gradients: backward passes whose gradients were cleared, and that were meant for an update."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from harness.watch.check import Fact
from harness.watch.events import Backward, BackwardBegins, End, StepBegins
from harness.watch.facts.gradient_ledger import Cleared, Contribution, GradientLedger, Ledger

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

KEPT = 16
"""Losses that wait for a step of their optimizer: more than a window has micro-batches, mostly. Neither half nor double
of it changes a verdict of the corpus."""

IN_A_ROW = 3
"""Updates, one after the other, each with a backward pass of a line that feeds none, from which on that is no
measurement. Neither half nor double of it changes a verdict of the corpus."""

WITH_CLIPPING = 6
"""Windows, one after the other, that lose as many clipped gradients each, from which on nobody has chosen by their norm
which to drop. Neither half nor double of it changes a verdict of the corpus."""


@dataclass(frozen=True)
class Loss:
    """Gradients that were cleared, and that no optimizer used."""

    entries: list[Contribution]
    where: str | None
    update: int
    partly: bool
    """Whether others, cleared with them, had been used."""

    @property
    def lines(self) -> set[str | None]:
        return {entry.where for entry in self.entries}

    @property
    def measured(self) -> bool:
        """Whether what was differentiated was so again, as when the norms of an update's parts are looked at before."""
        return all(entry.fate.differentiated > 1 for entry in self.entries)


@dataclass(eq=False)
class Losses:
    """Of one optimizer, since its latest step."""

    waiting: list[Loss] = field(default_factory=list)
    clipped: list[Loss] = field(default_factory=list)
    """Those whose norm was looked at before."""
    alike: int = 0
    """Windows in a row that lost as many of the clipped ones."""
    as_many: int = 0


@dataclass
class Unused:
    """Of a line that feeds no update."""

    latest: int
    """The update that lost a pass of it."""
    in_a_row: int = 1
    loss: Loss | None = None
    """One that was lost when there had been enough of them."""


class LostGradients(Fact):
    """Tells what was lost from what was only measured, by what becomes of other passes of the same line."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.lost: list[Loss] = []
        """What the step at hand, or the end, has shown to be lost."""
        self._gradients = monitor.fact(GradientLedger)
        self._losses: WeakKeyDictionary[Ledger, Losses] = WeakKeyDictionary()
        self._feeding: set[str | None] = set()
        """Lines whose backward passes optimizers have used as they were."""
        self._measuring: set[str | None] = set()
        """Lines whose backward passes are for something else."""
        self._unused: dict[str | None, Unused] = {}

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for cleared in self._gradients.cleared:
            if cleared.lost and not cleared.ledger.moved:
                self._keep(cleared, event)

    def _keep(self, cleared: Cleared, event: BackwardBegins) -> None:
        where = cleared.ledger.zeroed or cleared.lost[-1].where or event.where
        used = any(entry.used for entry in cleared.entries)
        losses = self._losses.setdefault(cleared.ledger, Losses())
        kept = losses.waiting if cleared.clipped is None else losses.clipped  # who measures the norm may leave one out
        kept.append(Loss(cleared.lost, where, self.monitor.update, used))
        del kept[:-KEPT]

    def on_backward(self, event: Backward) -> None:
        if event.where in self._unused and any(t.requires_grad for f in event.forwards for t in f.tensors.values()):
            self._measuring.add(event.where)  # the gradient of an input

    def on_step_begins(self, event: StepBegins) -> None:
        self.lost, window = [], self._gradients.window
        if window is None or window.empty or not window.fresh:
            return
        lines = {entry.where for entry in window.fresh}
        if lines <= self._feeding or window.ledger.as_left:
            self._feeding |= lines
        losses = self._losses.get(window.ledger)
        if losses is None:
            return
        self.lost = [*self._among(losses.waiting), *self._dropped_by_norm(losses)]
        waiting, losses.waiting = [loss for loss in losses.waiting if not loss.measured], []
        if waiting and not window.ledger.as_left:
            self._measuring.update(*(loss.lines for loss in waiting))  # the gradients of others were made of them
        self._count_unused(waiting, event.update)

    def _among(self, losses: list[Loss]) -> list[Loss]:
        """Where the same line's gradients are used at other times, all of them were meant to be."""
        return [loss for loss in losses if not loss.measured and self._feeding & loss.lines]

    def _count_unused(self, waiting: list[Loss], update: int) -> None:
        """A line whose gradients are never used may measure something, unless it belongs to every update."""
        for line in set[str | None]().union(*(loss.lines for loss in waiting)):
            unused = self._unused.setdefault(line, Unused(update, in_a_row=0))
            unused.in_a_row = unused.in_a_row + 1 if unused.latest >= update - 1 else 1
            unused.latest = update
            if unused.in_a_row > IN_A_ROW:
                unused.loss = unused.loss or waiting[-1]

    def _dropped_by_norm(self, losses: Losses) -> list[Loss]:
        clipped, losses.clipped = [loss for loss in losses.clipped if not loss.measured], []
        many = len(clipped)
        losses.alike = losses.alike + 1 if many and many == losses.as_many else int(many > 0)
        losses.as_many = many
        return self._among(clipped)[-1:] if losses.alike >= WITH_CLIPPING else []

    def on_end(self, event: End) -> None:
        self.lost = [loss for losses in self._losses.values() for loss in self._among(losses.waiting)]
        known = self._feeding | self._measuring
        self.lost += [each.loss for line, each in self._unused.items() if each.loss is not None and line not in known]
