"""Written parameters: what changed them beside the steps of the optimizer that trains them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by, is_clamped
from harness.watch.bounded import Latest
from harness.watch.events import Backward, End, Fact, Load, Step, StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.facts.tensor_updates import ROUNDINGS, with_gradients
from harness.watch.host import brought, on_host, together
from harness.watch.recogniser import Recogniser

OF_A_MODEL, OF_A_STEP = 2, 4
"""Frozen tensors that are copied to be compared later: few, because they may be large. A guess."""

MAX_REST = 1e-2
"""Largest part of a change that scaling leaves unexplained, which rounding may make."""

WithCopies = list[tuple[torch.Tensor, torch.Tensor]]
"""Tensors, each with a copy of what it was."""


class FrozenFollowed(Fact):
    """A few frozen parameters beside what they were. ``where`` is the backward pass or the step."""

    needs = "frozen parameters"
    in_windows = "all"
    changed: str | None = None
    """The names of those that changed; None where none did."""
    by: Literal["the script", "the optimizer"] = "the script"
    """What changed them: between two updates the script scaled or clipped them, or in its step the optimizer did."""


class LeftByUpdate(Fact):
    """A parameter as an optimizer's step finds it, beside what the update before had left. ``where`` is the step.

    It is told of an update of one backward pass: several may go through weights that are moved for a while.
    """

    needs = "second update of one backward pass"
    in_windows = "all"
    apart: float
    """The largest difference of an element."""
    largest: float
    """The largest element, in absolute value, that the update before had left."""
    clamped: bool = False
    """Whether it was only clamped since."""
    name: str = ""


class StartFollowed(Fact):
    """A parameter that updates have moved, beside what it was before the first."""

    needs = "second update"
    set_back: bool = False
    """Whether it was what it was before, in the later half of the updates since, too."""
    name: str = ""
    update: int = 1
    """The first update that found it so."""


@dataclass
class SetBack:
    """A tensor that was found to be what it was before the first update."""

    name: str
    where: str | None
    update: int
    steps: int
    """Steps of the optimizer, up to now."""
    since: torch.Tensor
    """Steps since the latest that found it so: a tensor, so that no step waits for a device."""

    @property
    def goes_on(self) -> bool:
        """Whether that was in the later half, too: the first steps may be taken back until a smaller one is found."""
        return 2 * int(self.since) <= self.steps


@dataclass
class FollowedTensor:
    """The smallest tensor of an optimizer."""

    parameter: torch.Tensor
    start: torch.Tensor
    """What it was before the first update."""
    moved: torch.Tensor | None = None
    """Whether the latest step of an optimizer left another: a tensor, so that no step waits for a device."""
    back: SetBack | None = None


class WrittenParameters(Recogniser):
    makes = (FrozenFollowed, LeftByUpdate)

    def begin(self) -> None:
        self._parameters = self.fact(Parameters)
        self._of_models: WeakKeyDictionary[nn.Module, WithCopies] = WeakKeyDictionary()
        """A few frozen tensors of each model that is trained."""
        self._of_step: WithCopies = []
        """Frozen tensors of the optimizer that steps which still have a gradient."""
        self._backward_passes = 0
        """Since the latest step of any optimizer."""
        self._followed: WeakKeyDictionary[Optimizer, list[torch.Tensor]] = WeakKeyDictionary()
        """A few tensors of each optimizer, and those of others that it holds too."""
        self._left: dict[int, torch.Tensor] = {}
        """What the latest step of any optimizer made of each, by its id."""
        self._joins = False
        """Whether ranks with fewer rows than others are given their weights in the end, as ``join()`` does."""
        self.monitor.looked_at.append(self._looked_at)

    def _looked_at(self) -> Iterator[torch.Tensor]:
        for followed in self._followed.values():
            for parameter in followed:
                yield parameter
                if id(parameter) in self._left:
                    yield self._left[id(parameter)]

    def on_backward(self, event: Backward) -> None:
        self._backward_passes += 1
        self._joins |= any(getattr(getattr(f.model, "_join_config", None), "enable", False) for f in event.forwards)
        if event.inside_step or not event.at.sampled or not self.wants(FrozenFollowed):
            return
        for forward in event.forwards:
            if forward.number in event.reached:
                self._compare(forward.model, event)

    def _compare(self, model: nn.Module, event: Backward) -> None:
        """Frozen parameters of a model that is trained stay as they are, whoever might write to them."""
        before = self._of_models.get(model)
        if before is None:
            frozen = [p for p in model.parameters() if not p.requires_grad and p.numel()]
            apart = max(1, len(frozen) // OF_A_MODEL)
            self._of_models[model] = _copies(sorted(frozen, key=lambda p: p.numel())[::apart][:OF_A_MODEL])
            return
        still = [(p, value) for p, value in before if not p.requires_grad]
        written = [p for p, value in still if _written_as_all_are(value, p)]
        if still:
            self.tell(FrozenFollowed(changed=self._shown(written), where=event.where))
        self._of_models[model] = _copies([p for p, _ in still])

    def on_step_begins(self, event: StepBegins) -> None:
        self._of_step = []
        if not event.sampled:
            return
        if self.wants(FrozenFollowed):
            frozen = [p for p in held_by(event.optimizer) if not p.requires_grad]
            self._of_step = _copies([p for p in frozen if p.grad is not None][:OF_A_STEP])
            if frozen and not self._of_step:
                self.tell(FrozenFollowed(by="the optimizer", where=event.where))
        if self._backward_passes == 1 and not self._joins:
            for parameter in self._followed.get(event.optimizer, ()):
                self._tell_of(parameter, event.where)

    def _tell_of(self, parameter: torch.Tensor, where: str | None) -> None:
        if id(parameter) not in self._left:
            return
        left, now = together(self._left[id(parameter)], parameter)
        apart = (now - left).abs().max().item()
        clamped, name = bool(apart) and is_clamped(left, now), self._parameters.name_of(parameter) if apart else ""
        largest = left.abs().max().item()
        self.tell(LeftByUpdate(apart=apart, largest=largest, clamped=clamped, name=name, where=where))

    def on_step(self, event: Step) -> None:
        if self._of_step:
            apart = brought([(p.detach() != before).any() for p, before in self._of_step])
            changed = [p for (p, _), it_is in zip(self._of_step, apart, strict=True) if it_is]
            self._of_step = []
            self.tell(FrozenFollowed(changed=self._shown(changed), by="the optimizer", where=event.where))
        self._backward_passes = 0
        if self.wants(LeftByUpdate):
            if event.optimizer not in self._followed:
                self._follow(event.optimizer)
            for parameter in self._followed[event.optimizer]:
                self._left[id(parameter)] = parameter.detach().clone()

    def _follow(self, optimizer: Optimizer) -> None:
        mine = _small_ones(optimizer)
        held = {id(p) for p in held_by(optimizer)}
        theirs = {id(p): p for others in self._followed.values() for p in others if id(p) in held}
        for other, followed in self._followed.items():
            of_other = {id(p) for p in held_by(other)}
            followed += [p for p in mine if id(p) in of_other and id(p) not in {id(each) for each in followed}]
        self._followed[optimizer] = list(({id(p): p for p in mine} | theirs).values())
        alive = {id(p) for each in self._followed.values() for p in each}
        self._left = {key: left for key, left in self._left.items() if key in alive}

    def on_load(self, event: Load) -> None:
        self._of_models.clear()
        self._left.clear()

    def _shown(self, tensors: Sequence[torch.Tensor]) -> str | None:
        return self._parameters.shown({id(p) for p in tensors}) if tensors else None


class StartingValues(Recogniser):
    """What an optimizer's smallest tensor was before the first update."""

    makes = (StartFollowed,)

    def begin(self) -> None:
        self._parameters = self.fact(Parameters)
        self._followed: WeakKeyDictionary[Optimizer, FollowedTensor] = WeakKeyDictionary()
        self._back = Latest[SetBack]()  # up to the end, or to the next load
        self.monitor.looked_at.append(self._looked_at)

    def _looked_at(self) -> Iterator[torch.Tensor]:
        for written in self._followed.values():
            yield written.parameter
            yield written.start
            if written.moved is not None:
                yield written.moved

    def on_step_begins(self, event: StepBegins) -> None:
        followed = self._followed.get(event.optimizer)
        if followed is not None and followed.back is not None:
            followed.back.steps = event.number
            followed.back.since = (followed.back.since + 1) * (followed.parameter.detach() != followed.start).any()
        elif event.sampled:
            self._look(followed, event)

    def _look(self, followed: FollowedTensor | None, event: StepBegins) -> None:
        trained = [p for p, _ in with_gradients(event.optimizer)]
        if followed is None:
            if trained and event.number == 1:
                smallest = min(trained, key=lambda p: p.numel())
                self._followed[event.optimizer] = FollowedTensor(smallest, smallest.detach().clone())
            return
        if not _has_moved(followed):
            return
        self.tell(StartFollowed(where=event.where))
        if any(p is followed.parameter for p in trained) and _is_set_back(followed, event):
            name = self._parameters.name_of(followed.parameter)
            since = torch.zeros((), device=followed.start.device)
            followed.back = SetBack(name, event.where, event.update, event.number, since)
            self._back.append(followed.back)

    def on_step(self, event: Step) -> None:
        for followed in self._followed.values():  # optimizers may share it
            followed.moved = (followed.parameter.detach() != followed.start).any()

    def on_load(self, event: Load) -> None:
        self._tell_of_those_set_back()
        self._followed.clear()

    def on_end(self, event: End) -> None:
        self._tell_of_those_set_back()

    def _tell_of_those_set_back(self) -> None:
        for back in self._back:
            if back.goes_on:
                self.tell(StartFollowed(set_back=True, name=back.name, update=back.update, where=back.where))
        self._back.clear()


def _written_as_all_are(before: torch.Tensor, now: torch.Tensor) -> bool:
    """Whether a tensor was scaled or clipped, which needs nothing but itself.

    An average of other weights, running statistics or a code book is kept as frozen parameters too, and is meant to
    change.
    """
    before, now = (each.double().flatten() for each in together(before, now))
    change = now - before
    if before.shape != now.shape or before.numel() < 2 or not change.any() or not before.any():
        return False  # of one number any change is a multiple
    if is_clamped(before, now):
        return True
    along = torch.dot(change, before) / torch.dot(before, before)
    return bool((change - along * before).norm() <= MAX_REST * change.norm())


def _copies(tensors: Sequence[torch.Tensor]) -> WithCopies:
    return [(p, p.detach().clone()) for p in tensors]


def _small_ones(optimizer: Optimizer) -> list[torch.Tensor]:
    """Two small trainable tensors, one of them a matrix if there is one."""
    small = sorted((p for p in held_by(optimizer) if p.requires_grad), key=lambda p: p.numel())
    return small[:1] + [p for p in small if p.dim() > 1][:1]


def _has_moved(followed: FollowedTensor) -> bool:
    return followed.moved is not None and bool(on_host(followed.moved))


def _is_set_back(followed: FollowedTensor, event: StepBegins) -> bool:
    """Whether it is what it was, with a gradient and a learning rate by which it had moved."""
    parameter, start = together(followed.parameter, followed.start)
    gradient = followed.parameter.grad
    lr = max(float(group.get("lr") or 0.0) for group in event.optimizer.param_groups)
    moves = lr > ROUNDINGS * torch.finfo(start.dtype).eps * max(1.0, start.abs().max().item())
    return torch.equal(parameter, start) and moves and gradient is not None and bool(on_host(gradient).any())
