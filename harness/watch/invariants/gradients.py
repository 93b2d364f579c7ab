"""Gradient ledger: at each optimizer step the gradients are those of exactly the backward passes since the last one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.watch.events_old import Backward, Clip, Loss, Pass, Step, ZeroGrad
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import held_by

PROBES, LARGE = 3, 160_000
"""The gradients of so many parameters of an optimizer are followed, the smallest, and the last if not large."""

NEAR = 2e-3
"""How near a ratio of losses must be to a whole number's inverse to count as that."""


@dataclass(eq=False)
class Contribution:
    """What one backward pass added to the gradients."""

    number: int
    where: str | None
    share: float | None
    """The differentiated loss, divided by the mean loss of its batch; None where that is not known."""
    batch: Hashable
    """Tells what the model was given; None where that is not known."""
    of: Pass | None
    versions: int
    """Of all probes; shows whether parameters were changed since."""
    used: int = 0
    """The update that used it."""


@dataclass(eq=False)
class Ledger:
    """Of one optimizer."""

    probes: list[torch.Tensor]
    entries: list[Contribution]
    after: list[torch.Tensor | None]
    """The gradients as the latest backward pass left them."""
    clipped: Clip | None = None
    clipped_late: Clip | None = None
    """After the step."""
    clipped_without: Clip | None = None
    """When there was nothing to clip."""
    scaled: bool = False
    """Whether the gradients still carry a GradScaler's factor."""
    zeroed: str | None = None
    """Where gradients were last cleared by a call."""


class Gradients(Invariant):
    checks = (
        Statement(
            "gradients::cleared-between-updates",
            "Each update uses the gradients of its own backward passes; those of the update before are cleared.",
        ),
        Statement("gradients::not-lost", "Every gradient that was computed for an update reaches the optimizer."),
        Statement(
            "gradients::accumulation-scaled",
            "The losses of accumulated micro-batches are scaled so that they add up to the mean over the window.",
        ),
        Statement(
            "gradients::clipped-in-time",
            "Gradients are clipped when all of them are there, unscaled, and before the optimizer uses them.",
        ),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.ledgers: WeakKeyDictionary[Optimizer, Ledger] = WeakKeyDictionary()
        self.window_sizes: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self.cut: set[int] = set()
        """Backward passes whose window the shortening of a pass cut."""

    def _ledgers(self) -> list[Ledger]:
        return list(self.ledgers.values())

    def _begin(self, optimizer: Optimizer) -> Ledger | None:
        """The ledger of an optimizer, which begins with the first gradients that it can use."""
        known = self.ledgers.get(optimizer)
        if known is not None and all(probe.requires_grad for probe in known.probes):
            return known
        with_gradients = [p for p in held_by(optimizer) if not _is_zero(p.grad)]
        if not with_gradients:
            return known
        small = sorted(with_gradients, key=lambda p: p.numel())[:PROBES]
        last = [p for p in with_gradients[-2:] if p.numel() <= LARGE]
        probes = list({id(p): p for p in [*small, *last]}.values())
        self.ledgers[optimizer] = Ledger(probes, [], [None] * len(probes))
        return self.ledgers[optimizer]

    # What happens

    def backward_begins(self, event: Backward) -> None:
        if event.inside_step:
            return
        for ledger in self._ledgers():
            if all(_is_zero(p.grad) for p in ledger.probes):
                self._cleared(ledger, event.where)
        self._value = event.root.detach().float().sum().item() / event.scale if self.observer.is_sampled() else None

    def backward(self, event: Backward) -> None:
        if event.inside_step:
            return
        share, given = self._share(event), _given(event)
        for ledger in filter(None, [self._begin(optimizer) for optimizer in list(self.observer.optimizers)]):
            after = [_copy(p.grad) for p in ledger.probes]
            if all(_same(a, b) for a, b in zip(after, ledger.after, strict=True)):
                continue  # it went to another optimizer's parameters
            if ledger.clipped is not None:
                self._clipped_early(ledger, ledger.clipped, given)
            ledger.clipped = ledger.clipped_late = None
            ledger.after = after
            ledger.scaled = event.scale != 1.0
            ledger.entries.append(
                Contribution(
                    event.number,
                    event.where,
                    share,
                    given,
                    None if event.batch is None else event.batch.of,
                    _versions(ledger),
                )
            )

    def _clipped_early(self, ledger: Ledger, clip: Clip, given: Hashable) -> None:
        if given is not None and ledger.entries and ledger.entries[-1].batch == given:
            return  # several backward passes of one batch
        self.found(
            "gradients::clipped-in-time",
            expected="clipping once all micro-batches of the update have been added up",
            observed="it clips after a micro-batch, and then adds the gradients of further ones",
            hint="Clip right before optimizer.step(), only where the window of accumulated micro-batches is full.",
            where=clip.where,
            update=self.observer.update,
        )

    def _share(self, event: Backward) -> float | None:
        """How the differentiated loss compares with the mean loss of the batch."""
        if self._value is None:
            return None
        means = [mean for call in event.losses if (mean := mean_loss(call)) is not None]
        own = [f.loss.detach().float().item() for f in event.forwards if f.loss is not None and f.loss.dim() == 0]
        if len(means) > 1:
            return None
        mean = means[0] if means else own[-1] if own else None
        if mean is None or abs(mean) < 1e-6:
            return None
        return self._value / mean

    def zero_grad(self, event: ZeroGrad) -> None:
        for ledger in self._ledgers():
            ledger.zeroed = event.where

    def unscaled(self, optimizer: Optimizer) -> None:
        if optimizer in self.ledgers:
            self.ledgers[optimizer].scaled = False

    def skipped(self, optimizer: Optimizer) -> None:
        """A GradScaler left the update out; its gradients are meant to be lost."""
        ledger = self.ledgers.get(optimizer)
        if ledger is not None:
            for entry in ledger.entries:
                entry.used = entry.used or self.observer.update

    def clip(self, event: Clip) -> None:
        for ledger in self._ledgers():
            mine = [p for p in ledger.probes if any(p is q for q in event.parameters)]
            if not mine:
                continue
            fresh = [entry for entry in ledger.entries if not entry.used]
            if all(_is_zero(p.grad) for p in mine):
                ledger.clipped_without = event
            elif not fresh:
                ledger.clipped_late = event
            else:
                ledger.clipped = event
                if ledger.scaled:
                    self.found(
                        "gradients::clipped-in-time",
                        expected="gradients in their own scale when they are clipped",
                        observed="they still carry the GradScaler's factor",
                        hint="Call scaler.unscale_(optimizer) before clip_grad_norm_.",
                        where=event.where,
                        update=self.observer.update,
                    )

    def step_begins(self, event: Step) -> None:
        ledger = self.ledgers.get(event.optimizer)
        if ledger is None:
            return
        fresh = [entry for entry in ledger.entries if not entry.used]
        stale = [entry for entry in ledger.entries if entry.used]
        if all(_is_zero(p.grad) for p in ledger.probes):
            if fresh and not all(_is_zero(gradient) for gradient in ledger.after):
                self._nothing_to_use(ledger, event)
        else:
            if stale:
                self._not_cleared(stale[-1], fresh, event)
            self._check_window(fresh, ledger, event)
            if ledger.clipped_without is not None and event.number > 1:
                self._clip_found(ledger.clipped_without, "there are no gradients yet when it clips", event.update)
        for entry in fresh:
            entry.used = event.update
        ledger.entries = ledger.entries[-64:]
        ledger.clipped = ledger.clipped_without = ledger.clipped_late = None

    def pass_ends(self, event: Pass) -> None:
        if event.shortened:
            for ledger in self._ledgers():
                self.cut |= {entry.number for entry in ledger.entries if not entry.used}

    # What is wrong

    def _not_cleared(self, stale: Contribution, fresh: list[Contribution], event: Step) -> None:
        self.found(
            "gradients::cleared-between-updates",
            expected=f"the gradients of the backward passes since update {stale.used}",
            observed=f"those of update {stale.used} are still in them"
            + ("" if fresh else "; there was no backward pass since"),
            hint="Call optimizer.zero_grad() once for each update: after optimizer.step(), or before the first "
            "backward pass of the next one.",
            where=event.where,
            update=event.update,
        )

    def _cleared(self, ledger: Ledger, where: str | None) -> None:
        """The gradients were found empty when a backward pass began."""
        if ledger.clipped_late is not None:
            self._clip_found(ledger.clipped_late, "it clips after optimizer.step() has used them", self.observer.update)
            ledger.clipped_late = None
        lost = [entry for entry in ledger.entries if not entry.used and entry.number not in self.cut]
        perturbed = any(entry.versions != _versions(ledger) for entry in lost)
        if lost and not perturbed and ledger.clipped is None:  # who measures the norm may leave an update out
            used = any(entry.used for entry in ledger.entries)
            self.found(
                "gradients::not-lost",
                expected="an optimizer step after the backward passes, before their gradients are cleared",
                observed=f"the gradients of {len(lost)} backward pass{'es' * (len(lost) > 1)} were cleared "
                + ("and no step used them" if used else "before a step could use them"),
                hint="Clear the gradients after optimizer.step(). Where micro-batches are accumulated, make a step for "
                "the last window too, which the end of the epoch cuts short.",
                where=ledger.zeroed or lost[-1].where or where,
                update=self.observer.update,
            )
        ledger.entries = []
        ledger.after = [_copy(p.grad) for p in ledger.probes]
        ledger.clipped = None

    def _nothing_to_use(self, ledger: Ledger, event: Step) -> None:
        self.found(
            "gradients::not-lost",
            expected="gradients at optimizer.step()",
            observed="all of them are empty: they were cleared between the backward pass and the step",
            hint="Move zero_grad() behind optimizer.step(), or in front of the backward pass.",
            where=ledger.zeroed or event.where,
            update=event.update,
        )

    def _clip_found(self, clip: Clip, observed: str, update: int) -> None:
        self.found(
            "gradients::clipped-in-time",
            expected="clipping between the backward pass and optimizer.step()",
            observed=observed,
            hint="Call clip_grad_norm_ after the backward pass and before optimizer.step().",
            where=clip.where,
            update=update,
        )

    def _check_window(self, fresh: list[Contribution], ledger: Ledger, event: Step) -> None:
        size = len(fresh)
        shares = [entry.share for entry in fresh]
        batches = {entry.batch for entry in fresh}
        if size < 2 or None in shares or None in batches or len(batches) < size or len({e.of for e in fresh}) > 1:
            return
        usual = max(size, self.window_sizes.get(event.optimizer, 0))
        self.window_sizes[event.optimizer] = usual
        if size < usual or any(entry.number in self.cut for entry in fresh):
            return  # the end of an epoch cut it short
        known = [share for share in shares if share is not None]
        divided = self._divided_by_hand(ledger)
        total = sum(known) / divided
        first = known[0]
        if first <= 0:
            return  # a loss of another sign is another check's
        alike = all(abs(share - first) <= NEAR * abs(first) for share in known)
        whole = 1 / first
        mixed = all(min(abs(share - 1), abs(share * size - 1)) <= NEAR for share in known)
        if (not alike and not mixed) or abs(whole - round(whole)) > NEAR * abs(whole) or abs(total - 1) <= 2 * NEAR:
            return
        how = f"each is divided by {round(whole)}" if alike else "some are divided, others are not"
        self.found(
            "gradients::accumulation-scaled",
            expected=f"losses divided by {size}, because {size} micro-batches are added up for an update",
            observed=f"{how}, so the gradients are {total:.4g} times the mean's",
            hint=f"Divide each micro-batch's loss by {size} before its backward pass"
            " (Accelerate: gradient_accumulation_steps and accelerator.backward do it).",
            where=fresh[-1].where,
            update=event.update,
        )

    def _divided_by_hand(self, ledger: Ledger) -> float:
        """The factor by which gradients shrank after the last backward pass, where it is one for all of them."""
        if ledger.clipped is not None:
            return 1.0
        for probe, after in zip(ledger.probes, ledger.after, strict=True):
            if after is not None and probe.grad is not None and (norm := probe.grad.norm().item()):
                return float(after.norm().item() / norm)
        return 1.0


def _given(event: Backward) -> Hashable:
    """What tells one batch of inputs from another, by what the forwards that were gone through were given."""
    for forward in event.forwards:
        if forward.number in event.reached and (tensors := list(forward.tensors.values())):
            largest = max(tensors, key=lambda tensor: tensor.numel())
            return tuple(largest.shape), float(largest.detach().double().sum())
    return None if event.batch is None else event.batch.number


def mean_loss(call: Loss) -> float | None:
    """The mean loss of the batch, whatever reduction the script chose."""
    if call.function not in ("cross_entropy", "nll_loss") or call.options.get("weight") is not None:
        plain = call.value.dim() == 0 and _reduction(call) == "mean"
        return float(call.value.detach().float().item()) if plain else None
    options: dict[str, Any] = {
        name: value for name, value in call.options.items() if name in ("ignore_index", "label_smoothing")
    }
    function = getattr(torch.nn.functional, call.function)
    return float(function(call.input.detach().float(), call.target.detach(), reduction="mean", **options))


def _reduction(call: Loss) -> str:
    return str(call.options.get("reduction", "mean"))


def _copy(gradient: torch.Tensor | None) -> torch.Tensor | None:
    return None if gradient is None else gradient.detach().clone()


def _is_zero(gradient: torch.Tensor | None) -> bool:
    return gradient is None or not bool(gradient.any())


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one, other)


def _versions(ledger: Ledger) -> int:
    return sum(probe._version for probe in ledger.probes)
