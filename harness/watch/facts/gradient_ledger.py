"""Gradient ledger: which backward passes are in the gradients of each optimizer, and what became of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.torch_objects import held_by, is_dense, real
from harness.watch.bounded import MOST
from harness.watch.events import (
    Backward,
    BackwardBegins,
    Batch,
    Clip,
    Fact,
    PassEnds,
    SkippedStep,
    StepBegins,
    Unscale,
    ZeroGrad,
)
from harness.watch.facts.ledger import (
    MAX_COPIED_ELEMENTS,
    Contribution,
    Fate,
    Ledger,
    RowsGiven,
    _copy,
    _is_at_hand,
    _versions,
    _widest,
    is_zero,
    with_some_gradient,
)
from harness.watch.facts.losses import is_weighted, mean_loss, targets_in
from harness.watch.host import on_host
from harness.watch.monitor import ALWAYS_SAMPLED
from harness.watch.recogniser import Recogniser
from harness.watch.run.rows import exact_where_it_lies

if TYPE_CHECKING:
    pass

PROBES = 3
"""Parameters of an optimizer whose gradients are followed: the smallest of those that a backward pass reaches."""

MOST_PROBES = 32
"""Parameters that are followed where other backward passes reach others: as many as some heads have."""

MOST_IN_VAIN = 8
"""Backward passes without any gradient for an optimizer after which none is looked for beyond what is followed: all of
its parameters are gone through for that."""


class GradientsCleared(Fact):
    """The gradients of an optimizer were found empty when a backward pass began: they were cleared since the latest.

    ``where`` is the line that cleared them, or else that of a backward pass that was lost.
    """

    in_windows = "all"
    optimizer: Optimizer
    lost: Sequence[Contribution] = ()
    """What had been in them that no optimizer used or can still use, and that no shortening of a pass cut off."""
    partly: bool = False
    """Whether an optimizer had used others that had been in them."""
    moved: bool = False
    """Whether parameters were changed since the latest backward pass, where some are lost."""
    clipped: Clip | None = None
    """The clipping since the latest backward pass."""
    clipped_late: Clip | None = None
    """The one after the optimizer step."""


class GradientsAdded(Fact):
    """A backward pass added to gradients of an optimizer that another had left. ``where`` is that of the clipping."""

    in_windows = "all"
    clipped: bool = False
    """Whether they were clipped since the one before."""
    of_one_batch: bool = False
    """Whether both are of the same batch, as several losses are; asked where they were clipped in between."""


class GradientsClipped(Fact):
    """One call that clips gradients, or measures their norm."""

    needs = "clipping of gradients"
    in_windows = "all"
    scaled: bool = False
    """Whether they carried a GradScaler's factor."""
    used_up: bool = False
    """Whether the parameters came from an iterator that had nothing left."""


class GradientsUnscaled(Fact):
    """A GradScaler divided the gradients of an optimizer by its factor. ``where`` is that of the latest backward."""

    needs = "GradScaler"
    in_windows = "all"
    multiplied: bool
    """Whether it had multiplied any of the losses that they are of."""


class GradientsUsed(Fact):
    """An optimizer step is about to use gradients that are known. ``where`` is that of the step."""

    in_windows = "all"
    optimizer: Optimizer
    number: int = 1
    """Number of the optimizer's step, counted from 1."""
    fresh: Sequence[Contribution] = ()
    """The backward passes since its latest step, the oldest first."""
    stale: Sequence[Contribution] = ()
    """Backward passes that an earlier update used, and that nothing has cleared."""
    empty: bool = False
    """Whether all of its gradients are 0 or None."""
    scale: Literal["none", "taken out", "carried"] = "none"
    """What became of a GradScaler's factor in them."""
    clipped: bool = False
    """Whether they were clipped since the latest backward pass."""
    divided_by: float | None = 1.0
    """Number by which the script divided them after the latest backward pass, and before it clipped them; None where it
    did something else to them."""
    clipped_without: str | None = None
    """The line that clipped when there was nothing to clip; None without one."""
    cleared_at: str | None = None
    """The line that cleared gradients last."""
    used_elsewhere: bool = False
    """Whether another optimizer used what the fresh backward passes computed."""
    called: bool = False
    """Whether a model was called since the latest backward pass."""
    batch: Batch | None = None


class GradientLedger(Recogniser):
    """The ledgers of all optimizers."""

    makes = (GradientsCleared, GradientsAdded, GradientsClipped, GradientsUnscaled, GradientsUsed)

    def begin(self) -> None:
        self._ledgers: WeakKeyDictionary[Optimizer, Ledger] = WeakKeyDictionary()
        self._value: float | None = None
        """Value of the loss that is being differentiated, where it was looked at and weighs no row by itself."""
        self._fate = Fate()
        """What becomes of that loss's gradients."""
        self.cut: set[int] = set()
        """Backward passes whose window the shortening of a pass cut."""
        self._unscaled: Optimizer | None = None
        """The one whose gradients were unscaled since the latest step."""

    @property
    def _looks(self) -> bool:
        """Whether numbers are read from a device: what is wrong with gradients in each update is so in the first."""
        return self.monitor.updates_made - self.monitor.options.before < ALWAYS_SAMPLED

    def _known(self) -> list[tuple[Optimizer, Ledger]]:
        known = self.monitor.optimizers
        return [(optimizer, ledger) for optimizer, ledger in self._ledgers.items() if optimizer in known]

    @property
    def ledgers(self) -> list[Ledger]:
        return [ledger for _, ledger in self._known()]

    def _begin(self, optimizer: Optimizer) -> Ledger | None:
        """The ledger of an optimizer, which begins with the first gradients that it can use; None without any.

        Gradients that other parameters get, as those of another task's head, are looked at from then on, too.
        """
        known = self._ledgers.get(optimizer)
        searched = known is None or known.frozen or (known.in_vain < MOST_IN_VAIN and len(known.probes) < MOST_PROBES)
        trained = [p for p in held_by(optimizer) if p.requires_grad] if searched else []
        with_gradients = with_some_gradient(trained)
        if not with_gradients:
            if known is not None:
                known.in_vain += 1
                known.after = [_copy(p.grad) for p in known.probes]
            return None
        small = sorted(with_gradients, key=lambda p: p.numel())
        more = [p for p in (*small[1:PROBES], *with_gradients[-2:]) if p.numel() <= MAX_COPIED_ELEMENTS]
        probes = list({id(p): p for p in (small[0], *more)}.values())
        if known is None or known.frozen:
            known = self._ledgers[optimizer] = Ledger([], [])
        known.probes += probes
        known.after += [None] * len(probes)
        return known

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.inside_step:
            return
        for optimizer, ledger in self._known():
            if ledger.is_empty(looked_at=self._looks):
                self._clear(optimizer, ledger, event.where)
        for optimizer in list(self.monitor.optimizers):
            found = self._ledgers.get(optimizer) or self._begin(optimizer)
            if found is not None:  # what the script has written there itself is of no backward pass
                found.after, found.versions = [_copy(p.grad) for p in found.probes], _versions(found.probes)
        self._fate = Fate()
        if event.root.grad_fn is not None:
            hook = self.monitor.guarded(self, _Differentiated(self._fate))
            event.root.grad_fn.register_prehook(hook)
        sampled = self.monitor.is_sampled()
        self._value = None
        if sampled and not any(is_weighted(event.root, call) for call in event.losses):
            self._value = float(on_host(event.root).float().sum()) / event.scale

    def _clear(self, optimizer: Optimizer, ledger: Ledger, where: str | None) -> None:
        for entry in ledger.unused:
            entry.fate.waiting -= 1
        lost = [entry for entry in ledger.unused if entry.fate.lost and entry.number not in self.cut]
        cleared = GradientsCleared(
            optimizer=optimizer,
            lost=lost,
            partly=any(entry.used for entry in ledger.entries),
            moved=bool(lost) and ledger.moved,
            clipped=ledger.clipped,
            clipped_late=ledger.clipped_late,
            where=ledger.zeroed or (lost[-1].where if lost else None) or where,
        )
        ledger.entries = []
        ledger.after = [_copy(p.grad) for p in ledger.probes]
        ledger.clipped = ledger.clipped_late = None
        self.tell(cleared)

    def on_backward(self, event: Backward) -> None:
        if event.inside_step:
            return
        (share, targets), batch, fate = self._share(event), rows_of(event), self._fate
        of = None if event.batch is None else event.batch.of
        models = frozenset(self.monitor.number_of(f.model) for f in event.forwards if f.number in event.reached)
        stack = self.monitor.locator.stack()
        for optimizer in list(self.monitor.optimizers):
            ledger = self._ledgers.get(optimizer)
            if ledger is not None:
                ledger.cleared = False
            if ledger is None or ledger.frozen or ledger.is_empty(looked_at=self._looks):
                ledger = self._begin(optimizer)
            if ledger is None:
                continue  # the backward pass added nothing: all of its rows are ignored
            after = [_copy(p.grad) for p in ledger.probes]
            unchanged = ledger.is_unchanged(after, looked_at=self._looks)
            ledger.after, ledger.versions = after, _versions(ledger.probes)
            if unchanged:
                continue  # it went to another optimizer's parameters, or added nothing
            fate.waiting += 1
            entry = Contribution(
                event.number, event.where, share, targets, batch, of, fate, models, stack, event.scaled
            )
            before, clipped = ledger.entries[-1:], ledger.clipped
            ledger.clipped = ledger.clipped_late = None
            ledger.values = [p.detach().clone() for p in ledger.probes]
            ledger.scaled, ledger.scale = event.scaled, event.scale if event.scaled else 1.0
            ledger.entries.append(entry)
            if before:
                where = None if clipped is None else clipped.where
                alike = clipped is not None and batch is not None and before[0].batch == batch
                self.tell(GradientsAdded(clipped=clipped is not None, of_one_batch=alike, where=where))

    def _share(self, event: Backward) -> tuple[float | None, int | None]:
        """How the differentiated loss compares with the mean loss of the batch, and of how many targets that is."""
        if self._value is None:
            return None, None
        means = [(mean, targets_in(call)) for call in event.losses if (mean := mean_loss(call)) is not None]
        own = [float(on_host(f.loss).float()) for f in event.forwards if f.loss is not None and f.loss.dim() == 0]
        if len(means) > 1:
            return None, None
        mean, targets = means[0] if means else (own[-1] if own else None, None)
        if mean is None or abs(mean) < 1e-6:
            return None, None
        return self._value / mean, targets

    def on_zero_grad(self, event: ZeroGrad) -> None:
        for ledger in self.ledgers:
            ledger.zeroed, ledger.cleared = event.where, True

    def of(self, optimizer: Optimizer) -> Ledger | None:
        return self._ledgers.get(optimizer)

    def on_unscale(self, event: Unscale) -> None:
        self._unscaled = event.optimizer
        ledger = self._ledgers.get(event.optimizer)
        if ledger is None:
            return
        ledger.scaled = False
        if ledger.scale != 1:  # what the script does to them by hand is measured without it
            ledger.after = [None if each is None else each / ledger.scale for each in ledger.after]
            ledger.scale = 1.0
        if fresh := ledger.unused:
            self.tell(GradientsUnscaled(multiplied=any(entry.scaled for entry in fresh), where=fresh[-1].where))

    def on_skipped_step(self, event: SkippedStep) -> None:
        """The gradients of an update that a GradScaler left out are meant to be lost."""
        ledger = self._ledgers.get(event.optimizer)
        for entry in ledger.unused if ledger is not None else ():
            entry.used, entry.fate.used = self.monitor.update, True

    def on_clip(self, event: Clip) -> None:
        # Within a step it is a part of the optimizer's own formula.
        clipped = [] if self.monitor.in_step is not None else [each for each in self.ledgers if self._clip(each, event)]
        scaled = any(ledger.scaled for ledger in clipped)
        self.tell(GradientsClipped(scaled=scaled, used_up=event.used_up, where=event.where))

    def _clip(self, ledger: Ledger, event: Clip) -> bool:
        """Keep what was clipped; whether it was there, and still is to be used."""
        mine = [p for p in ledger.probes if any(p is q for q in event.parameters)]
        if not mine:
            return False
        if ledger.is_empty(mine, looked_at=self._looks):
            if all(is_zero(p.grad) for p in event.parameters):  # else it clips those of another optimizer
                ledger.clipped_without = event
            return False
        if not ledger.unused:
            ledger.clipped_late = event
            return False
        if ledger.clipped is None and self.monitor.is_sampled():
            ledger.divided_by = ledger.quotient()
        ledger.clipped = event
        return True

    def on_step_begins(self, event: StepBegins) -> None:
        unscaled, self._unscaled = self._unscaled is event.optimizer, None
        ledger = self._ledgers.get(event.optimizer)
        if ledger is None:
            if any(not is_zero(p.grad) for p in held_by(event.optimizer)):
                self._use_all()
            return
        divided_by: float | None = 1.0  # of an update whose shares are not known nobody asks
        if event.sampled:
            divided_by = ledger.divided_by if ledger.clipped is not None else ledger.quotient()
        fresh, stale = ledger.unused, [entry for entry in ledger.entries if entry.used]
        # Where only a part of a model is called, the others have a gradient.
        empty = ledger.is_empty(looked_at=self._looks) and not with_some_gradient(held_by(event.optimizer))
        for entry in fresh:
            entry.used = event.update
            entry.fate.waiting -= 1
            entry.fate.used = entry.fate.used or not empty
        used = GradientsUsed(
            optimizer=event.optimizer,
            number=event.number,
            fresh=fresh,
            stale=stale,
            empty=empty,
            scale="taken out" if unscaled else "none" if empty else _scale(event.optimizer, ledger, fresh),
            clipped=ledger.clipped is not None,
            divided_by=divided_by,
            clipped_without=None if ledger.clipped_without is None else ledger.clipped_without.where,
            cleared_at=ledger.zeroed,
            used_elsewhere=any(entry.fate.used for entry in fresh),
            called=bool(self.monitor.forwards),
            batch=event.batch,
            where=event.where,
        )
        ledger.entries = ledger.entries[-MOST:]
        ledger.clipped = ledger.clipped_without = ledger.clipped_late = None
        self.tell(used)

    def _use_all(self) -> None:
        """What is waiting may be in the gradients of an optimizer that was not known at the backward passes."""
        for ledger in self.ledgers:
            for entry in ledger.unused:
                entry.fate.used = True

    def on_pass_ends(self, event: PassEnds) -> None:
        if event.of.shortened:
            self.cut &= {entry.number for ledger in self.ledgers for entry in ledger.entries}
            self.cut |= {entry.number for ledger in self.ledgers for entry in ledger.unused}


class _Differentiated:
    """A hook of a loss's node in the graph, which holds no tensor."""

    def __init__(self, fate: Fate) -> None:
        self._fate = fate

    def __call__(self, gradients: tuple[torch.Tensor, ...]) -> None:
        self._fate.differentiated += 1


def rows_of(event: Backward) -> Hashable:
    """What tells one batch of inputs from another, by what the forwards that were gone through were given."""
    for forward in event.forwards:
        if forward.number in event.reached and (tensors := list(forward.tensors.values())):
            largest = max(tensors, key=lambda tensor: tensor.numel())
            looked_at = event.at.sampled or _is_at_hand(largest)
            given = real(on_host(largest) if looked_at else largest)
            number = None if event.batch is None else event.batch.number
            return RowsGiven(tuple(largest.shape), _identity(given), number, looked_at)
    return None if event.batch is None else event.batch.number


def _identity(given: torch.Tensor) -> list[torch.Tensor]:
    """What tells the numbers of a tensor from others: rows of small whole numbers often have the same sum."""
    total = given.sum(dtype=_widest(given))
    if not is_dense(given) or not given.dim():
        return [total]
    rows = exact_where_it_lies(given.reshape(len(given), -1))
    return [total, exact_where_it_lies(rows[None])]


def _scale(
    optimizer: Optimizer, ledger: Ledger, fresh: Sequence[Contribution]
) -> Literal["none", "taken out", "carried"]:
    """What became of the factor of a GradScaler that did not unscale: a fused optimizer may take it out itself."""
    scaled = bool(fresh) and all(entry.scaled for entry in fresh)
    if not scaled or getattr(optimizer, "grad_scale", None) is not None:
        return "none"
    return "carried" if ledger.as_left else "taken out"
