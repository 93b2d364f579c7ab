"""The ledger of an optimizer: what each backward pass added to its gradients, and what became of that."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import ref

import torch

from harness.torch_objects import real, version
from harness.watch.events import Clip
from harness.watch.host import bring, brought, on_host, together

if TYPE_CHECKING:
    from harness.watch.events import Pass


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


MAX_COPIED_ELEMENTS = 160_000
"""Elements up to which the last parameter, a head's, is followed too: copying it costs nothing that is noticed."""


MIN_COSINE = 0.999
"""Cosine from which on two gradients point the same way. What was added or chosen by hand is far below."""


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
