"""Lost gradients: backward passes whose gradients were cleared, and that were meant for an update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from harness.watch.bounded import Latest
from harness.watch.events import Backward, End, Fact
from harness.watch.facts.gradient_ledger import GradientLedger, GradientsCleared, GradientsUsed
from harness.watch.facts.ledger import Contribution, Ledger
from harness.watch.recogniser import Recogniser

UPDATES_IN_A_ROW = 3
"""Updates, one after the other, each with a backward pass of a line that feeds none, from which on that is no
measurement."""

WITH_CLIPPING = 6
"""Windows, one after the other, that lose as many clipped gradients each, from which on nobody has chosen by their norm
which to drop."""


class GradientsLost(Fact):
    """Gradients were cleared that no optimizer used, and that were meant for an update. ``where`` cleared them."""

    in_windows = "all"
    entries: Sequence[Contribution]
    """The backward passes that they are of."""
    update: int = 1
    """Number of the update in which they were cleared."""
    partly: bool = False
    """Whether others, cleared with them, had been used."""
    optimizers: int = 1
    """Optimizers of the loop."""

    @property
    def lines(self) -> set[str | None]:
        return {entry.where for entry in self.entries}

    @property
    def measured(self) -> bool:
        """Whether what was differentiated was so again, as when the norms of an update's parts are looked at before."""
        return all(entry.fate.differentiated > 1 for entry in self.entries)


@dataclass(eq=False)
class LossesOfOptimizer:
    """Gradients of one optimizer that were lost since its latest step."""

    waiting: Latest[GradientsLost] = field(default_factory=Latest)
    clipped: Latest[GradientsLost] = field(default_factory=Latest)
    """Lost gradients whose norm was looked at before."""
    alike: int = 0
    """Windows in a row that lost as many of the clipped ones."""
    as_many: int = 0


@dataclass
class UnusedLine:
    """Use of a line that feeds no update."""

    latest: int
    """The update that lost a pass of it."""
    in_a_row: int = 1
    loss: GradientsLost | None = None
    """One that was lost when there had been enough of them."""


class LostGradients(Recogniser):
    """Tells what was lost from what was only measured, by what becomes of other passes of the same line."""

    makes = (GradientsLost,)

    def begin(self) -> None:
        self._gradients = self.fact(GradientLedger)
        self._losses: WeakKeyDictionary[Ledger, LossesOfOptimizer] = WeakKeyDictionary()
        self._feeding: set[str | None] = set()
        """Lines whose backward passes optimizers have used as they were."""
        self._measuring: set[str | None] = set()
        """Lines whose backward passes are for something else."""
        self._unused: dict[str | None, UnusedLine] = {}

    def on_cleared(self, fact: GradientsCleared) -> None:
        ledger = self._gradients.of(fact.optimizer)
        if ledger is None or not fact.lost or fact.moved:
            return
        losses = self._losses.setdefault(ledger, LossesOfOptimizer())
        kept = losses.waiting if fact.clipped is None else losses.clipped  # who measures the norm may leave one out
        lost = GradientsLost(
            entries=fact.lost,
            update=fact.at.update,
            partly=fact.partly,
            optimizers=len(self._gradients.ledgers),
            where=fact.where,
        )
        kept.append(lost)

    def on_backward(self, event: Backward) -> None:
        if event.where in self._unused and any(t.requires_grad for f in event.forwards for t in f.tensors.values()):
            self._measuring.add(event.where)  # the gradient of an input

    def on_used(self, fact: GradientsUsed) -> None:
        ledger = self._gradients.of(fact.optimizer)
        if ledger is None or fact.empty or not fact.fresh:
            return
        lines = {entry.where for entry in fact.fresh}
        if lines <= self._feeding or ledger.as_left:
            self._feeding |= lines
        losses = self._losses.get(ledger)
        if losses is None:
            return
        lost = [*self._among(losses.waiting), *self._dropped_by_norm(losses)]
        waiting, losses.waiting = [loss for loss in losses.waiting if not loss.measured], Latest()
        if waiting and not ledger.as_left:
            self._measuring.update(*(loss.lines for loss in waiting))  # the gradients of others were made of them
        self._count_unused(waiting, fact.at.update)
        for each in lost:
            self.tell(each)

    def _among(self, losses: Iterable[GradientsLost]) -> list[GradientsLost]:
        """Where the same line's gradients are used at other times, all of them were meant to be."""
        return [loss for loss in losses if not loss.measured and self._feeding & loss.lines]

    def _count_unused(self, waiting: list[GradientsLost], update: int) -> None:
        """A line whose gradients are never used may measure something, unless it belongs to every update."""
        for line in set[str | None]().union(*(loss.lines for loss in waiting)):
            unused = self._unused.setdefault(line, UnusedLine(update, in_a_row=0))
            unused.in_a_row = unused.in_a_row + 1 if unused.latest >= update - 1 else 1
            unused.latest = update
            if unused.in_a_row > UPDATES_IN_A_ROW:
                unused.loss = unused.loss or waiting[-1]

    def _dropped_by_norm(self, losses: LossesOfOptimizer) -> list[GradientsLost]:
        clipped, losses.clipped = [loss for loss in losses.clipped if not loss.measured], Latest()
        many = len(clipped)
        losses.alike = losses.alike + 1 if many and many == losses.as_many else int(many > 0)
        losses.as_many = many
        return self._among(clipped)[-1:] if losses.alike >= WITH_CLIPPING else []

    def on_end(self, event: End) -> None:
        lost = [loss for losses in self._losses.values() for loss in self._among(losses.waiting)]
        known = self._feeding | self._measuring
        lost += [each.loss for line, each in self._unused.items() if each.loss is not None and line not in known]
        for each in lost:
            self.tell(each)
