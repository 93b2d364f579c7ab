"""Rank gradients: what each process differentiated, beside the gradient that its optimizer got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from harness import launch
from harness.torch_objects import is_distributed
from harness.watch.bounded import First, FirstByKey
from harness.watch.events import (
    Backward,
    BackwardBegins,
    Clip,
    Combined,
    Event,
    Fact,
    LossCall,
    StepBegins,
    TrainerMade,
)
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.monitor import ALWAYS_SAMPLED
from harness.watch.recogniser import Recogniser
from harness.watch.world_size import divides
from harness.watch.written_losses import LINEAR, MOST_NODES

Array = npt.NDArray[np.float64]

MOST_PROBES, MOST_VALUES = 8, 64
"""Parameters whose gradients are compared, and values of each, evenly spread. By reasoning: a factor shows in any."""

GRADIENT_RTOL = 1e-3
"""Share by which two gradients that are the same may differ: float32's rounding is far below, and half of one far
above."""

SMALLEST = 1e-30
"""Below any norm of a gradient."""

KEY = "harness: scaled"
"""Under which a node of a graph keeps the line that multiplied or divided there."""


class GradientsOfRanks(Fact):
    """The ranks are over: the gradients of the first updates, beside those that one process would have had.

    ``where`` is a line that calls backward.
    """

    needs = "update of several processes that can be compared"
    of_run = True
    ranks: int
    updates: int
    """Updates that were compared."""
    passes: int
    """Backward passes of each rank in one of them."""
    reduced: float | None
    """What the optimizers got, as a multiple of the mean over the ranks of what each differentiated; None where it
    points elsewhere, or not always by one factor."""
    whole: float | None
    """The same as a multiple of the gradient of the mean loss over all rows (or tokens) of all ranks and passes; None
    where that is not known, too."""
    nearest: float | None
    """Multiple of it that is nearest, the mean over the updates; None where it is not known."""
    off: float
    """Share by which it differs from that multiple beyond a factor, the mean over the updates; 0 where not known."""
    uneven: float
    """How much more a row or token of one backward pass weighs than one of another, at most."""
    unequal: float
    """How many times as many rows or tokens one backward pass has as another, at most."""
    of_all: bool
    """Whether each loss is divided by the rows or tokens of all ranks and passes together: the shares of the mean loss
    that are differentiated add up to 1, and are not all the same."""
    clipped: bool
    """Whether gradients were clipped in each of them."""
    clipped_own: str | None
    """The line that clipped them before they were averaged."""
    by_trainer: bool
    """Whether a Trainer of transformers computes the losses, which no code of the script scales."""
    divided: str | None
    """The line that divides what is differentiated by the number of processes, by the script's text."""


class OwnPass(NamedTuple):
    """One backward pass, of which this rank's own gradients are known before anything is averaged."""

    number: int
    own: dict[int, Array]
    """Gradients by the number of the parameter."""
    rows: int | None
    """Rows or tokens of its loss."""
    share: float | None
    """What is differentiated, as a multiple of the mean of that loss; None where that is not known."""
    several: bool
    """Whether that is one of several losses, the one with the largest share."""


class RankGradients(Recogniser):
    makes = (GradientsOfRanks,)

    def begin(self) -> None:
        self._ledgers = self.fact(GradientLedger)
        self._probes: list[nn.Parameter] = []
        self._handles: list[Any] = []
        self._own: dict[int, Array] = {}
        self._reached = WeakKeyDictionary[LossCall, torch.Tensor]()
        """Loss functions that the backward pass at hand goes through, with the gradients of what they gave."""
        self._scaling = FirstByKey[str | None, None](16)
        """Lines that multiplied or divided what was differentiated; None where that is not known."""
        self._passes = First[OwnPass]()
        self._clipped: tuple[list[float], str | None] | None = None
        """The gradients as they were before they were clipped, and where that was."""
        self._updates: list[dict[str, Any]] = []
        self._where: str | None = None
        self._by_trainer = False

    def on_trainer_made(self, event: TrainerMade) -> None:
        computes = getattr(type(event.trainer), "compute_loss", None)
        self._by_trainer = str(getattr(computes, "__module__", "")).startswith("transformers.")

    def on_combined(self, event: Combined) -> None:
        node: Any = event.value.grad_fn
        if event.sign in ("*", "/") and node is not None and _is_looked_at(event):
            node.metadata[KEY] = event.where

    def on_loss_call(self, event: LossCall) -> None:
        # Before the script writes to it: what it is then has another node.
        if event.value.grad_fn is not None and _is_looked_at(event):
            hook: Any = event.value.register_hook
            hook(self.monitor.guarded(self, partial(self._reach, ref(event))))

    def _reach(self, of: ref[LossCall], gradient: torch.Tensor) -> None:
        call = of()
        if call is not None:
            self._reached[call] = gradient.detach()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._reached.clear()
        if event.inside_step or event.scale != 1 or not _is_looked_at(event):
            return
        self._scaling.update((line, None) for line in lines_that_scale(event.root.grad_fn))
        if not self._probes:
            trained = [p for f in event.forwards for p in f.model.parameters() if p.requires_grad]
            trained = [p for p in {id(p): p for p in trained}.values() if not is_distributed(p)]
            self._probes = trained[:: max(1, len(trained) // MOST_PROBES)][:MOST_PROBES]
        if all(p.grad is None or not bool(p.grad.any()) for p in self._probes):
            self._passes = First()
            self._clipped = None
        self._own = {}
        for number, probe in enumerate(self._probes):
            if probe.requires_grad:
                hook: Any = probe.register_hook
                self._handles.append(hook(self.monitor.guarded(self, partial(self._add, number))))

    def _add(self, number: int, gradient: torch.Tensor) -> None:
        now = _values(gradient)
        self._own[number] = self._own[number] + now if number in self._own else now

    def on_backward(self, event: Backward) -> None:
        for handle in self._handles:
            handle.remove()
        if self._handles and self._own:
            self._passes.append(OwnPass(event.number, self._own, *self._of_losses(event.losses)))
            self._where = event.where
        self._handles = []

    def _of_losses(self, losses: Sequence[LossCall]) -> tuple[int | None, float | None, bool]:
        """Rows or tokens of the loss, its share in what is differentiated, and whether there are several."""
        reached = [call for call in losses if call in self._reached]
        if len(losses) == 1:
            share = _share(losses[0], self._reached[losses[0]]) if reached else None
            return int(losses[0].targets), share, False
        shares = [share for call in reached if (share := _share(call, self._reached[call]))]
        if not shares or len(shares) < len(reached) or not (len(reached) == 1 or all(call.is_mean for call in reached)):
            return None, None, False
        largest = max(range(len(shares)), key=lambda number: abs(shares[number]))
        return int(reached[largest].targets), shares[largest], len(reached) > 1

    def on_clip(self, event: Clip) -> None:
        given = {id(each) for each in event.parameters}
        if self._passes and self._clipped is None and all(id(p) in given for p in self._probes):
            self._clipped = self._used(), event.where

    def on_step_begins(self, event: StepBegins) -> None:
        passes, clipped = self._passes, self._clipped
        held = {id(each) for group in event.optimizer.param_groups for each in group["params"]}
        if not passes or not all(id(p) in held for p in self._probes):
            return
        self._passes, self._clipped = First(), None
        if passes.is_full:  # there may have been more, whose gradients are used too
            return
        ledger = self._ledgers.of(event.optimizer)
        shares = {} if ledger is None else {each.number: each.share for each in ledger.entries}
        own = [
            {
                "values": self._flat(each.own),
                "rows": each.rows,
                "share": shares.get(each.number) if each.share is None else each.share,
                "several": each.several,
            }
            for each in passes
        ]
        before = None if clipped is None else {"values": clipped[0], "where": clipped[1]}
        self._updates.append({"update": event.update, "own": own, "used": self._used(), "clipped": before})

    def _used(self) -> list[float]:
        return self._flat({n: _values(p.grad) for n, p in enumerate(self._probes) if p.grad is not None})

    def _flat(self, values: Mapping[int, Array]) -> list[float]:
        """Values of all probes; zeros for those without a gradient."""
        zeros = (np.zeros(min(p.numel(), MOST_VALUES)) for p in self._probes)
        flat: list[float] = np.concatenate([values.get(n, zero) for n, zero in enumerate(zeros)]).tolist()
        return flat

    def summary(self) -> list[dict[str, Any]]:
        return self._updates

    def compare(self, summaries: Sequence[list[dict[str, Any]]]) -> None:
        by_update = [{each["update"]: each for each in summary} for summary in summaries]
        shared = [update for update in by_update[0] if all(update in each for each in by_update)]
        updates = [found for u in shared if (found := compared([each[u] for each in by_update])) is not None]
        if not updates:
            return
        offs = [each.off for each in updates if each.off is not None]
        nearest = [each.nearest for each in updates if each.nearest is not None]
        self.tell(
            GradientsOfRanks(
                ranks=len(summaries),
                updates=len(updates),
                passes=max(each.passes for each in updates),
                reduced=_one([each.reduced for each in updates]),
                whole=_one([each.whole for each in updates]),
                nearest=float(np.mean(nearest)) if len(nearest) == len(updates) else None,
                off=float(np.mean(offs)) if len(offs) == len(updates) else 0.0,
                uneven=float(np.mean([each.uneven for each in updates])),
                unequal=float(np.mean([each.unequal for each in updates])),
                of_all=all(each.of_all for each in updates),
                clipped=all(each.clipped for each in updates),
                clipped_own=next((each.clipped_own for each in updates if each.clipped_own), None),
                by_trainer=self._by_trainer and not any(each.several for each in updates),
                divided=self._divided(),
                where=self._where,
            )
        )

    def _divided(self) -> str | None:
        """The line that divides what is differentiated by the number of processes, by the script's text."""
        locator = self.monitor.locator
        script = set() if locator.script_place is None else {locator.script_place.rpartition(":")[0]}
        files = sorted(locator.users_files() | script) if self._scaling else []
        return next((found for where in self._scaling if (found := divides(where, files))), None)


class UpdateCompared(NamedTuple):
    """One update of all ranks."""

    passes: int
    reduced: float | None
    whole: float | None
    nearest: float | None
    off: float | None
    uneven: float
    unequal: float
    of_all: bool
    clipped: bool
    clipped_own: str | None
    several: bool = False


def compared(ranks: list[dict[str, Any]]) -> UpdateCompared | None:
    """None where nothing is to be seen: no gradient, or a different number of parameters."""
    if len({len(each["used"]) for each in ranks}) != 1:
        return None
    own = [np.sum([each["values"] for each in rank["own"]], axis=0) for rank in ranks]
    mean = np.mean(own, axis=0)
    if not np.linalg.norm(mean) or not all(np.isfinite(each).all() for each in own):
        return None
    # Where clipping comes after the averaging, the gradient is looked at before it.
    before = [rank["clipped"] for rank in ranks]
    is_own = all(
        each is not None and _alike(np.array(each["values"]), mine) for each, mine in zip(before, own, strict=True)
    )
    differ = not all(_alike(own[0], each) for each in own)
    clipped_own = str(before[0]["where"]) if is_own and differ else None
    whole, uneven, unequal, of_all = _of_one_process(ranks)
    used = np.array(ranks[0]["used"] if before[0] is None or clipped_own else before[0]["values"])
    return UpdateCompared(
        passes=max(len(rank["own"]) for rank in ranks),
        reduced=_factor(used, mean),
        whole=None if whole is None else _factor(used, whole),
        nearest=None if whole is None else _nearest(used, whole),
        off=None if whole is None else _off(used, whole),
        uneven=uneven,
        unequal=unequal,
        of_all=of_all,
        clipped=None not in before,
        clipped_own=clipped_own,
        several=any(each["several"] for rank in ranks for each in rank["own"]),
    )


def _of_one_process(ranks: list[dict[str, Any]]) -> tuple[Array | None, float, float, bool]:
    """The gradient of the mean loss over all rows, how unlike rows weigh, how unlike passes are in number of rows, and
    whether losses are shares of the whole.

    None where that is not known.
    """
    passes: list[dict[str, Any]] = [each for rank in ranks for each in rank["own"]]
    if not all(each["rows"] and each["share"] for each in passes):
        return None, 1.0, 1.0, False
    if any(each["several"] for each in passes) and (len(passes) > len(ranks) or len({p["rows"] for p in passes}) > 1):
        return None, 1.0, 1.0, False  # weights of the losses, or of the passes: one number does not tell both
    rows, shares = ([each[what] for each in passes] for what in ("rows", "share"))
    weights = [abs(share) / of for share, of in zip(shares, rows, strict=True)]
    weighed = [np.array(each["values"]) * (each["rows"] / each["share"]) for each in passes]
    found: Array = np.sum(weighed, axis=0) / sum(rows)
    of_all = abs(sum(shares) - 1) <= GRADIENT_RTOL and max(shares) - min(shares) > GRADIENT_RTOL
    return (found if found.any() else None), max(weights) / min(weights), max(rows) / min(rows), of_all


def _factor(used: Array, expected: Array) -> float | None:
    """What one is a multiple of the other by."""
    factor = _nearest(used, expected)
    return factor if factor and _alike(used, factor * expected) else None


def _nearest(used: Array, expected: Array) -> float:
    return float(used @ expected / (expected @ expected))


def _off(used: Array, expected: Array) -> float:
    """Share by which it differs beyond a factor."""
    nearest = expected * _nearest(used, expected)
    return float(np.linalg.norm(used - nearest) / max(float(np.linalg.norm(nearest)), SMALLEST))


def _alike(one: Array, other: Array) -> bool:
    return bool(np.linalg.norm(one - other) <= GRADIENT_RTOL * np.linalg.norm(other))


def _one(factors: Sequence[float | None]) -> float | None:
    """The factor of all updates, where it is one."""
    known = [each for each in factors if each is not None]
    same = len(known) == len(factors) and max(known) - min(known) <= 2 * GRADIENT_RTOL * max(map(abs, known))
    return float(np.mean(known)) if same else None


def _values(gradient: torch.Tensor) -> Array:
    flat = gradient.detach().reshape(-1)
    apart = max(1, flat.numel() // MOST_VALUES)
    found: Array = flat[::apart][:MOST_VALUES].double().cpu().numpy()
    return found


def _is_looked_at(event: Event) -> bool:
    return event.at.update <= ALWAYS_SAMPLED and launch.in_process_group()


def _share(call: LossCall, gradient: torch.Tensor) -> float | None:
    """What is differentiated, as a multiple of the mean loss of a call, by the gradient of what the call gave.

    It says what the value does not: something added to the loss changes that, and a sum over processes, too.
    """
    if call.is_mean:
        return float(gradient)
    if not call.of_classes or call.is_weighted:
        return None
    if call.reduction == "sum":
        return float(gradient) * int(call.targets)
    counted = call.counted
    return float(gradient[counted].sum()) if gradient.shape == counted.shape else None


def lines_that_scale(root: Any) -> Iterator[str | None]:
    """The lines that multiplied or divided what is differentiated; None where one is not known."""
    waiting, seen = [root], 0
    while waiting and seen < MOST_NODES:
        node = waiting.pop()
        name = type(node).__name__
        if node is None or not name.startswith((*LINEAR, "Sub")):
            continue
        seen += 1
        if name.startswith(("Mul", "Div")):
            yield node.metadata.get(KEY)
        waiting += [part for part, _ in node.next_functions]
