from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from harness.watch.check import Check
from harness.watch.events import Backward, BackwardBegins, End, StepBegins
from harness.watch.facts.gradient_ledger import Cleared, Contribution, GradientLedger, Ledger, Window
from harness.watch.monitor import Monitor

KEPT = 16
"""Losses that wait for a step of their optimizer: more than a window has micro-batches, mostly. A guess."""

IN_A_ROW = 3
"""Updates, one after the other, each with a backward pass of a line that feeds none, from which on that is no
measurement. A guess."""

WITH_CLIPPING = 6
"""Windows, one after the other, that lose as many clipped gradients each, from which on nobody has chosen by their norm
which to drop. A guess."""


@dataclass(frozen=True)
class Loss:
    """Gradients that were cleared, and that no optimizer used."""

    entries: list[Contribution]
    where: str | None
    update: int
    partly: bool
    """Whether others, cleared with them, had been used."""


@dataclass(eq=False)
class Losses:
    """Of one optimizer, since its latest step."""

    waiting: list[Loss] = field(default_factory=list)
    clipped: list[Loss] = field(default_factory=list)
    """Those whose norm was looked at before."""
    alike: int = 0
    """Windows in a row that lost as many of the clipped ones."""
    as_many: int = 0


class Lost(Check):
    """Gradients that were computed for an update are cleared before the optimizer uses them.

    ## Why is this a bug?
    The backward pass of those rows was for nothing: they are never learned from. Where `zero_grad()` stands between
    `backward()` and `step()`, nothing is learned at all; where the last, unfilled window of accumulated micro-batches
    gets no step, the end of every epoch is thrown away.

    ## What to do
    Clear the gradients after optimizer.step(). Where micro-batches are accumulated, make a step for the last window
    too, which the end of the epoch cuts short.

    ## When it is right
    A backward pass is not lost if any optimizer used it: the generator's loss leaves gradients in the discriminator,
    and the actor's in the critic, which are cleared. Updates that a GradScaler leaves out, gradients whose norm was
    measured before they were dropped, parameters that were moved between the backward pass and the clearing (SAM and
    other methods of two passes), gradients that the script reads to make others of them (PCGrad, Fisher information)
    and those of an input (adversarial training) are not reported.

    ## References
    - https://github.com/huggingface/accelerate/issues/616
    """

    id = "gradients::lost"
    needs = "optimizer step after a backward pass"
    formerly = ("gradients::not-lost",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)
        self.losses: WeakKeyDictionary[Ledger, Losses] = WeakKeyDictionary()
        self.feeding: set[str | None] = set()
        """Lines whose backward passes optimizers have used as they were."""
        self.measuring: set[str | None] = set()
        """Lines whose backward passes are for something else."""
        self.unused: dict[str | None, tuple[int, int]] = {}
        """Lines that feed no update: the latest one that lost a pass of theirs, and how many did in a row."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for cleared in self.gradients.cleared:
            if cleared.lost and not cleared.ledger.moved:
                self._keep(cleared, event)

    def _keep(self, cleared: Cleared, event: BackwardBegins) -> None:
        where = cleared.ledger.zeroed or cleared.lost[-1].where or event.where
        used = any(entry.used for entry in cleared.entries)
        losses = self.losses.setdefault(cleared.ledger, Losses())
        kept = losses.waiting if cleared.clipped is None else losses.clipped  # who measures the norm may leave one out
        kept.append(Loss(cleared.lost, where, self.monitor.update, used))
        del kept[:-KEPT]
        if kept is losses.waiting:
            self._judge(losses)

    def on_backward(self, event: Backward) -> None:
        if event.where in self.unused and any(t.requires_grad for f in event.forwards for t in f.tensors.values()):
            self.measuring.add(event.where)  # the gradient of an input

    def on_step_begins(self, event: StepBegins) -> None:
        window = self.gradients.window
        self.looked |= window is not None
        if window is None or not window.fresh:
            return
        if window.empty:
            self._emptied(window, event)
            return
        lines = {entry.where for entry in window.fresh}
        by_hand = not lines <= self.feeding and not window.ledger.as_left
        if not by_hand:
            self.feeding |= lines
        losses = self.losses.get(window.ledger)
        if losses is None:
            return
        self._judge(losses)
        if by_hand:
            self.measuring |= {entry.where for loss in losses.waiting for entry in loss.entries}
        self._judge_unused(losses.waiting, event.update)
        self._judge_clipped(losses)
        losses.waiting = []

    def _judge(self, losses: Losses) -> None:
        """Where the same line's gradients are used at other times, all of them were meant to be."""
        for loss in losses.waiting:
            if self.feeding.intersection(entry.where for entry in loss.entries):
                self._lost(loss)

    def _judge_unused(self, waiting: list[Loss], update: int) -> None:
        """A line whose gradients are never used may measure something, unless it belongs to every update."""
        for line in {entry.where for loss in waiting for entry in loss.entries} - self.measuring - self.feeding:
            latest, in_a_row = self.unused.get(line, (0, 0))
            in_a_row = in_a_row + 1 if latest >= update - 1 else 1
            self.unused[line] = update, in_a_row
            if in_a_row > IN_A_ROW:
                self._lost(waiting[-1])

    def _judge_clipped(self, losses: Losses) -> None:
        many, losses.clipped, kept = len(losses.clipped), [], losses.clipped
        losses.alike = losses.alike + 1 if many and many == losses.as_many else int(many > 0)
        losses.as_many = many
        if losses.alike >= WITH_CLIPPING and self.feeding.intersection(e.where for loss in kept for e in loss.entries):
            self._lost(kept[-1])

    def _lost(self, loss: Loss) -> None:
        lost = len(loss.entries)
        self.found(
            expected="an optimizer step after the backward passes, before their gradients are cleared",
            observed=f"the gradients of {lost} backward pass{'es' * (lost > 1)} were cleared "
            + ("and no step used them" if loss.partly else "before a step could use them"),
            where=loss.where,
            update=loss.update,
            hint=self._hint(loss.entries),
        )

    def _hint(self, entries: Iterable[Contribution]) -> str | None:
        if len(self.gradients.ledgers) < 2:
            return None
        lines = " and ".join(sorted({entry.where for entry in entries if entry.where}))
        return f"Let the optimizer of the loss at {lines} make its step before anything clears the gradients."

    def _emptied(self, window: Window, event: StepBegins) -> None:
        if any(entry.fate.used for entry in window.fresh):
            return  # they were another optimizer's to use
        early = bool(self.monitor.forwards)
        self.found(
            expected="gradients at optimizer.step()",
            observed="all of them are empty: "
            + ("optimizer.step() comes before the backward pass" * early)
            + ("they were cleared between the backward pass and the step" * (not early)),
            where=window.ledger.zeroed or event.where,
            update=event.update,
            hint="Call optimizer.step() after the backward pass of its batch, and zero_grad() after that."
            if early
            else "Move zero_grad() behind optimizer.step(), or in front of the backward pass.",
        )

    def on_end(self, event: End) -> None:
        for losses in self.losses.values():
            self._judge(losses)
