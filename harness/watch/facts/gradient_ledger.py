"""Gradient ledger: which backward passes are in the gradients of each optimizer, and what became of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary, ref

import torch
from torch.optim import Optimizer

from harness.torch_objects import held_by, is_dense, real, version
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
from harness.watch.facts.losses import is_weighted, mean_loss, targets_in
from harness.watch.host import bring, brought, on_host, together
from harness.watch.monitor import ALWAYS_SAMPLED
from harness.watch.recogniser import Recogniser
from harness.watch.run.rows import exact_where_it_lies

if TYPE_CHECKING:
    from harness.watch.events import Pass

PROBES = 3
"""Parameters of an optimizer whose gradients are followed: the smallest of those that a backward pass reaches."""

MOST_PROBES = 32
"""Parameters that are followed where other backward passes reach others: as many as some heads have."""

MOST_IN_VAIN = 8
"""Backward passes without any gradient for an optimizer after which none is looked for beyond what is followed: all of
its parameters are gone through for that."""

MAX_COPIED_ELEMENTS = 160_000
"""Elements up to which the last parameter, a head's, is followed too: copying it costs nothing that is noticed."""

MIN_COSINE = 0.999
"""Cosine from which on two gradients point the same way. What was added or chosen by hand is far below."""


@dataclass(eq=False)
class Fate:
    """What became of the gradients of one backward pass, whichever optimizers they went to."""

    used: bool = False
    """Whether any optimizer's step used them."""
    waiting: int = 0
    """Optimizers that can still use them."""
    differentiated: int = 0
    """How often the loss was differentiated that they are of: alone, or as a part of another."""

    @property
    def lost(self) -> bool:
        return not self.used and not self.waiting


@dataclass(eq=False)
class Contribution:
    """What one backward pass added to the gradients of an optimizer."""

    number: int
    where: str | None = None
    share: float | None = None
    """The differentiated loss, divided by the mean loss of its batch; None where that is not known."""
    targets: int | None = None
    """Number of targets that count in that mean; None where that is not known."""
    batch: Hashable = None
    """Tells what the model was given; None where that is not known."""
    of: Pass | None = None
    fate: Fate = field(default_factory=Fate)
    models: frozenset[int] = frozenset()
    """Numbers of the models that it went through."""
    stack: tuple[tuple[str, int], ...] = ()
    """All of the user's lines that led to it."""
    scaled: bool = False
    """Whether it carries a GradScaler's factor."""
    used: int = 0
    """The update of this optimizer that used it."""


@dataclass(eq=False)
class Ledger:
    """Gradients of one optimizer, and what was done to them."""

    probes: list[torch.Tensor]
    after: list[torch.Tensor | None]
    """The gradients as the latest backward pass left them."""
    values: list[torch.Tensor] = field(default_factory=list)
    """The probes themselves at the latest backward pass."""
    entries: list[Contribution] = field(default_factory=list)
    clipped: Clip | None = None
    clipped_late: Clip | None = None
    """After the step."""
    clipped_without: Clip | None = None
    """When there was nothing to clip."""
    scaled: bool = False
    """Whether the gradients still carry a GradScaler's factor."""
    scale: float = 1.0
    """GradScaler's factor in the gradients."""
    divided_by: float | None = 1.0
    """Number by which the script divided the gradients before it clipped them; None where it did something else to
    them."""
    zeroed: str | None = None
    """Where gradients were last cleared by a call."""
    in_vain: int = 0
    """Backward passes that gave its optimizer no gradient at all."""
    versions: list[tuple[ref[torch.Tensor], int] | None] = field(default_factory=list)
    """Which tensors the gradients were after the latest backward pass, and in which version."""
    cleared: bool = False
    """Whether a call cleared gradients since then."""

    @property
    def unused(self) -> list[Contribution]:
        return [entry for entry in self.entries if not entry.used]

    def of_update(self, update: int) -> set[int]:
        """The numbers of the backward passes that this update uses, or is still to use."""
        return {entry.number for entry in self.entries if entry.used in (0, update)}

    @property
    def frozen(self) -> bool:
        """Whether a part of what is looked at is trained no more."""
        return not all(probe.requires_grad for probe in self.probes)

    def is_empty(self, of: Sequence[torch.Tensor] | None = None, *, looked_at: bool) -> bool:
        """Whether what is looked at, or these of it, has no gradient; parameters beside it may have.

        The numbers tell it; on a device, where to read them makes the script wait, only in the first updates. Later a
        gradient is taken for cleared where a call clears them and it has been written to since the backward pass.
        """
        given = [p.grad for p in (self.probes if of is None else of) if p.grad is not None]
        if looked_at or all(_is_at_hand(each) for each in given):
            return all(is_zero(each) for each in given)
        return self.cleared and not any(_is_as_it_was(each, self.versions) for each in given)

    def is_unchanged(self, after: Sequence[torch.Tensor | None], *, looked_at: bool) -> bool:
        """Whether a backward pass left the gradients as they were; on a device told as above."""
        if looked_at or all(each is None or _is_at_hand(each) for each in after):
            return all(_same(a, b) for a, b in zip(after, self.after, strict=True))
        now = [p.grad for p in self.probes]
        return all(
            each is before is None if each is None or before is None else _is_as_it_was(each, self.versions)
            for each, before in zip(now, self.after, strict=True)
        )

    @property
    def moved(self) -> bool:
        """Whether parameters were changed since the latest backward pass."""
        return any(not torch.equal(probe, value) for probe, value in zip(self.probes, self.values, strict=False))

    def _bring(self) -> None:
        """Read the gradients as they are and as they were left at once."""
        bring(each for each in (*self.after, *(p.grad for p in self.probes)) if each is not None)

    @property
    def as_left(self) -> bool:
        """Whether the gradients are those that the latest backward pass left, but for a factor."""
        self._bring()
        pairs = [(p.grad, after) for p, after in zip(self.probes, self.after, strict=True) if not is_zero(after)]
        return bool(pairs) and all(_point_alike(now, after) for now, after in pairs)

    def quotient(self) -> float | None:
        """Number by which the gradients of several backward passes were divided since; None where no one number did
        it."""
        if len(self.unused) < 2:
            return 1.0  # nobody asks
        self._bring()
        pairs = [(after, p.grad) for p, after in zip(self.probes, self.after, strict=True) if not is_zero(after)]
        if all(_same(after, now) for after, now in pairs):
            return 1.0
        if not self.as_left:
            return None
        quotients = [_norm(after) / _norm(now) for after, now in pairs]
        alike = all(is_same_quotient(each, quotients[0], self.rounding) for each in quotients)
        return quotients[0] if alike else None

    @property
    def rounding(self) -> float:
        """The largest relative difference of two quotients of the gradients that were divided by the same number."""
        return max((2 * torch.finfo(each.dtype).eps for each in self.after if each is not None), default=0.0)


@dataclass(frozen=True, eq=False)
class RowsGiven:
    """What a model was given, as far as it tells one batch from another. Comparing two may wait for a device."""

    shape: tuple[int, ...]
    identity: Sequence[torch.Tensor]
    """The sum of its numbers, (); and the identity of its rows in their order, (1,), where it has any."""
    batch: int | None
    """The number of the loader's batch; None without a loader."""
    looked_at: bool
    """Whether the numbers are at hand. In other updates two batches of a loader are taken for different ones."""

    def __hash__(self) -> int:
        return hash(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowsGiven) or self.shape != other.shape:
            return False
        of_loader = self.batch is not None and other.batch is not None
        if of_loader and self.batch != other.batch and not (self.looked_at and other.looked_at):
            return False
        one, another = brought(self.identity), brought(other.identity)
        return len(one) == len(another) and all(map(torch.equal, one, another))


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


def is_zero(gradient: torch.Tensor | None) -> bool:
    return gradient is None or not bool(on_host(gradient).any())


def with_some_gradient(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors whose gradient is not 0."""
    some = [(p, p.grad) for p in tensors if p.grad is not None]
    anything = brought([gradient.any() for _, gradient in some])
    return [p for (p, _), any_ in zip(some, anything, strict=True) if any_]


def _is_at_hand(tensor: torch.Tensor) -> bool:
    """Whether its numbers can be read without waiting for a device."""
    return tensor.device.type == "cpu"


def _versions(probes: Sequence[torch.Tensor]) -> list[tuple[ref[torch.Tensor], int] | None]:
    return [None if p.grad is None else (ref(p.grad), version(p.grad)) for p in probes]


def _is_as_it_was(gradient: torch.Tensor, versions: Sequence[tuple[ref[torch.Tensor], int] | None]) -> bool:
    return any(known is not None and known[0]() is gradient and known[1] == version(gradient) for known in versions)


def _widest(tensor: torch.Tensor) -> torch.dtype:
    """Type in which numbers are added up; some devices have no float64."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


def _point_alike(now: torch.Tensor | None, after: torch.Tensor | None) -> bool:
    """Whether one gradient is a multiple of another, as it is once it was clipped, divided or unscaled."""
    if now is None or after is None or now.shape != after.shape or now.is_sparse:
        return False
    one, other = (real(each).flatten().double() for each in together(now, after))
    return bool(torch.dot(one, other) >= MIN_COSINE * one.norm() * other.norm() > 0)


def is_same_quotient(one: float, other: float, rounding: float) -> bool:
    return abs(one - other) <= rounding * abs(other)


def _norm(gradient: torch.Tensor | None) -> float:
    assert gradient is not None
    return float(real(on_host(gradient)).double().norm())


def _copy(gradient: torch.Tensor | None) -> torch.Tensor | None:
    return None if gradient is None else gradient.detach().clone()


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(*together(one, other))
