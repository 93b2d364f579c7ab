"""Tensor updates: what an optimizer step did to a few of its tensors, and what its formula says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.optim import Optimizer

from harness.watch.events import Backward, Clip, Fact, Step, StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.facts.reference_updates import Before, expected_update, known_faults, looked_at
from harness.watch.host import brought
from harness.watch.recogniser import Recogniser

SAMPLED_TENSORS = 4
"""Tensors that are looked at in a sampled update, other ones each time: few, because each is copied."""

MAX_RELATIVE_ERROR = 1e-2
"""Largest difference from the formula, as a share of the largest change, that rounding may make."""

MAX_SHARE_UNCHANGED = 0.25
"""Largest share of the elements of a low precision tensor that may stay as they are, though they had to change."""

ROUNDINGS = 4
"""Units in the last place by which a change must be above, and a difference below, what rounding does."""


@dataclass(frozen=True)
class TensorUpdate:
    """What a step did to one tensor."""

    tensor: torch.Tensor
    dtype: torch.dtype
    lr: float
    due: bool
    """Whether its gradient and learning rate are such that it had to change."""
    changed: bool
    as_defined: bool | None
    """Whether it is what the optimizer's formula says, but for rounding; None where no formula is known.

    A class with a step of its own, or a step that changes its gradients, may have another formula: of those only what
    is known to go wrong is not as defined.
    """
    fault: str | None = None
    """What is known to go wrong and gives this update."""
    to_change: int = 0
    """Elements that had to change by the formula; counted in low precision only."""
    lost: int = 0
    """Elements that had to change and did not."""
    name: str = "a tensor"
    """Name of the tensor in its model, where it did not change and had to."""


class TensorsUpdated(Fact):
    """What an optimizer step did to the tensors that are looked at in it. ``where`` is that of the step."""

    needs = "update with a gradient and a learning rate"
    in_windows = "all"
    optimizer: str = "SGD"
    """The name of its class."""
    tensors: Sequence[TensorUpdate]
    """At least one."""
    rounded_away: float | None = None
    """The mean share of elements that updates left as they were; None where it is no more than may be."""


class TensorUpdates(Recogniser):
    makes = (TensorsUpdated,)

    def begin(self) -> None:
        self._parameters = self.fact(Parameters)
        self._before: list[Before] = []
        self._turn = 0
        self._lost = 0.0
        """The sum of the shares of elements that each update lost to rounding."""
        self._updates = 0
        """Number of updates in which that was looked at."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step:
            self._before = []  # a closure's step has gradients of its own

    def on_clip(self, event: Clip) -> None:
        if self.monitor.in_step is not None:
            self._before = []  # the step changes its gradients first

    def on_step_begins(self, event: StepBegins) -> None:
        self._before = []
        if not event.sampled:
            return
        trained = with_gradients(event.optimizer)
        chosen = [trained[(self._turn + i) % len(trained)] for i in range(min(SAMPLED_TENSORS, len(trained)))]
        self._turn += SAMPLED_TENSORS
        for parameter, group in chosen:
            gradient = parameter.grad
            if group.get("lr") is not None and gradient is not None and not gradient.is_sparse:
                self._before.append(Before.of(event.optimizer, parameter, group, gradient))

    def on_step(self, event: Step) -> None:
        seen, self._before = _all_looked_at(event.optimizer, self._before), []
        if not seen:
            return
        to_change = sum(each.to_change for each in seen)
        if to_change and event.number > 1:
            self._lost += sum(each.lost for each in seen) / to_change
            self._updates += 1
        share = self._lost / self._updates if self._updates > 1 else 0.0
        self.tell(
            TensorsUpdated(
                optimizer=type(event.optimizer).__name__,
                tensors=[replace(each, name=self._parameters.name_of(each.tensor)) for each in seen]
                if any(each.due and not each.changed for each in seen)
                else seen,
                rounded_away=share if share > MAX_SHARE_UNCHANGED else None,
                where=event.where,
            )
        )


def with_gradients(optimizer: Optimizer) -> list[tuple[torch.Tensor, dict[str, Any]]]:
    """The trainable tensors of an optimizer that have a gradient, each with its group."""
    pairs = [(p, group) for group in optimizer.param_groups for p in group["params"]]
    return [(p, group) for p, group in pairs if p.requires_grad and p.grad is not None]


@dataclass(frozen=True)
class _Compared:
    """A tensor before and after a step, with what is asked of it: single numbers, where it lies."""

    before: Before
    now: torch.Tensor
    expected: torch.Tensor | None
    """Tensor that the optimizer's formula gives; None where none is known."""
    asked: dict[str, torch.Tensor]

    @classmethod
    def of(cls, optimizer: Optimizer, before: Before) -> _Compared:
        value, now, gradient = before.value, looked_at(before.parameter, before.parameter), before.gradient
        asked = {
            "has gradient": gradient.any(),
            "gradient finite": gradient.isfinite().all(),
            "squares finite": gradient.square().isfinite().all(),
            "largest": value.abs().max() if value.numel() else value.new_zeros(()),
            "changed": (now != value).any(),
        }
        expected = expected_update(optimizer, before)
        compared = cls(before, now, expected, asked)
        if expected is None:
            return compared
        rounded = expected.to(value.dtype)
        asked |= {
            "fits": rounded.isfinite().all(),
            "due": (rounded != value).any(),
            "as expected": compared.comes_out(expected),
        }
        if compared.in_low_precision:
            changes = expected != value.double()
            asked |= {"to change": changes.sum(), "lost": (changes & (now == value)).sum()}
        return compared

    @property
    def in_low_precision(self) -> bool:
        return self.before.value.element_size() < 4

    def comes_out(self, after: torch.Tensor) -> torch.Tensor:
        """Whether the step gave this but for rounding, ()."""
        assert self.expected is not None
        value = self.before.value
        change = self.expected - value.double()
        rounding = ROUNDINGS * torch.finfo(value.dtype).eps * value.double().abs()
        allowed = MAX_RELATIVE_ERROR * change.abs().amax() + rounding + (change.abs() if self.in_low_precision else 0)
        return ~((self.now.double() - after).abs() > allowed).any()


def _all_looked_at(optimizer: Optimizer, before: Sequence[Before]) -> list[TensorUpdate]:
    """What a step did to some tensors: all numbers are read at once, for which the script waits once."""
    compared = [_Compared.of(optimizer, each) for each in before]
    read = iter(brought([number for each in compared for number in each.asked.values()]))
    return [_looked_at(optimizer, each, {name: next(read).item() for name in each.asked}) for each in compared]


def _looked_at(optimizer: Optimizer, compared: _Compared, answer: dict[str, Any]) -> TensorUpdate:
    before = compared.before
    value = before.value
    due = _is_due(optimizer, before, answer)
    about = (before.parameter, value.dtype, float(before.group["lr"]), due, bool(answer["changed"]))
    if compared.expected is None or not answer["fits"] or not answer["squares finite"]:
        return TensorUpdate(*about, as_defined=None)
    as_defined: bool | None = answer["as expected"]
    fault = None
    if not as_defined:
        faults = known_faults(optimizer, before)
        fault = next((fault for fault, after in faults if compared.comes_out(after)), None)
        as_defined = None if fault is None and _may_differ(optimizer, before) else False
    if not compared.in_low_precision:
        return TensorUpdate(*about, as_defined, fault)
    return TensorUpdate(*about, as_defined, fault, answer["to change"], answer["lost"])


def _may_differ(optimizer: Optimizer, before: Before) -> bool:
    """Whether the step is the user's own, or has changed the gradient, so that its formula is not known."""
    own, after = not type(optimizer).step.__module__.startswith("torch.optim."), before.parameter.grad
    return own or (after is not None and not torch.equal(looked_at(after, before.parameter), before.gradient))


def _is_due(optimizer: Optimizer, before: Before, answer: dict[str, Any]) -> bool:
    """Whether the tensor had to change; of an optimizer whose formula is not known only where it is a kind of Adam."""
    if not answer["has gradient"] or not answer["gradient finite"]:
        return False
    if float(before.group["lr"]) <= ROUNDINGS * torch.finfo(before.value.dtype).eps * answer["largest"]:
        return False
    if "due" in answer:
        return bool(answer["due"])
    # A gradient far below what the root of its mean square is divided by makes no step.
    steps = bool((before.gradient.abs() > before.group.get("eps", 1e-8)).any())
    return steps and "adam" in type(optimizer).__name__.lower()
