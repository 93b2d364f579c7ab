"""Training modes: in which mode what updates are made of was computed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, ref

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness.torch_objects import held_by, held_by_any
from harness.watch.bounded import Latest
from harness.watch.events import Backward, BackwardBegins, Fact, Forward, InnerForward, StepBegins, ZeroGrad
from harness.watch.facts.copies import Copies
from harness.watch.monitor import HELD
from harness.watch.recogniser import Recogniser
from harness.watch.run.evaluations import mode_dependent

MIN_DRIFTS = 4
"""Updates that are looked at from which on it is no accident."""

FIRST_PASSES = 8
"""Passes of a model that are all looked at: it may be the second that is trained."""


class TrainedThrough(Fact):
    """A backward pass went through a model with modules that behave otherwise in train mode."""

    needs = "module of dropout or normalisation"
    in_windows = "all"
    training: bool
    """Whether any of these modules is in train mode: the model itself may be, and its parts as they were loaded."""


class UpdatedInEvalMode(Fact):
    """An optimizer step uses gradients of a model in eval mode of which nothing shows that it is meant.

    ``where`` is where the model was called.
    """

    in_windows = "all"
    model: str
    """The name of its class."""
    sensitive: int
    """Modules that behave otherwise in train mode."""
    validates: bool
    """Whether it is trained over one DataLoader in train mode, and over this one in eval mode."""


class FrozenNorms(Fact):
    """A backward pass went through batch normalisations with frozen weights. ``where`` called the model."""

    needs = "batch normalisation with frozen weights"
    in_windows = "first"
    frozen: int
    drifting: int = 0
    """Frozen ones that are in train mode, and take each batch into their running statistics."""
    updates: int = 0
    """Such passes in a row in which some did, and no step changed their weights."""


class TeacherAnswered(Fact):
    """A model that no optimizer holds answered without a graph beside the one that is trained."""

    needs = "teacher beside the model that is trained"
    in_windows = "first"
    teacher: str
    """The name of its class."""
    norms: int = 0
    """Batch normalisations of the teacher in train mode."""
    dropouts: int = 0
    """Other modules of the teacher in train mode that behave otherwise then."""
    updates: int = 0
    """Updates in which it was in train mode, so far."""


@dataclass(frozen=True)
class InEvalMode:
    """A model that the gradients at hand come from."""

    model: nn.Module
    where: str | None
    """Where it was called."""
    validates: bool
    """Whether it is trained over one DataLoader in train mode, and over this one in eval mode."""


@dataclass(frozen=True)
class _Answer:
    model: ReferenceType[nn.Module]
    shape: torch.Size
    gradients: bool
    where: str | None


class TrainingModes(Recogniser):
    makes = (TrainedThrough, UpdatedInEvalMode)

    def begin(self) -> None:
        self._in_train_mode: WeakKeyDictionary[nn.Module, WeakSet[Any]] = WeakKeyDictionary()
        """Models that were trained in train mode, and the loaders over which they were."""
        self._in_eval_mode = Latest[InEvalMode]()  # until an update uses their gradients

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self._in_eval_mode:  # gradients that were taken away without a call are not used any more
            self._in_eval_mode = Latest(each for each in self._in_eval_mode if _has_gradients(each.model))

    def on_backward(self, event: Backward) -> None:
        loader = None if event.batch is None else event.batch.of.loader
        for forward in event.forwards:
            if forward.number not in event.reached:
                continue
            if sensitive := mode_dependent(forward.model):
                self.tell(TrainedThrough(training=any(each.training for each in sensitive), where=forward.where))
            if forward.model.training:
                loaders = self._in_train_mode.setdefault(forward.model, WeakSet())
                if loader is not None:
                    loaders.add(loader)
            elif self._is_at_fault(forward.model):
                others = self._in_train_mode.get(forward.model, ())
                found = InEvalMode(forward.model, forward.where, len(others) > 0 and loader not in (None, *others))
                self._in_eval_mode.append(found)

    def _is_at_fault(self, model: nn.Module) -> bool:
        sensitive = mode_dependent(model)
        if not sensitive or any(module.training for module in sensitive) or _mostly_frozen(model):
            return False
        frozen_statistics = all(isinstance(module, _BatchNorm) for module in sensitive)
        return not frozen_statistics or model in self._in_train_mode

    def on_zero_grad(self, event: ZeroGrad) -> None:
        self._in_eval_mode.clear()

    def on_step_begins(self, event: StepBegins) -> None:
        if not self._in_eval_mode:
            return
        held = {id(p) for p in held_by(event.optimizer)}
        for forward in self._in_eval_mode:
            if any(id(p) in held for p in _trainable(forward.model)):
                sensitive = len(mode_dependent(forward.model))
                name = type(forward.model).__name__
                self.tell(
                    UpdatedInEvalMode(model=name, sensitive=sensitive, validates=forward.validates, where=forward.where)
                )
        self._in_eval_mode.clear()


class FrozenNormModes(Recogniser):
    makes = (FrozenNorms,)

    def begin(self) -> None:
        self._updates = 0
        self._passes: Counter[int] = Counter()
        """Model number to the backward passes through it."""
        self._began: dict[int, torch.Tensor] = {}
        """Their weights at the first of these updates: those of a copy that follows another network change, and of one
        that is frozen for the step of another alone."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or self._updates >= MIN_DRIFTS:
            return
        reached = [each for each in event.forwards if each.number in event.reached]
        for each in reached:
            self._passes[self.monitor.number_of(each.model)] += 1
        if not event.at.sampled and all(self._passes[self.monitor.number_of(f.model)] > FIRST_PASSES for f in reached):
            return
        frozen = {id(m): m for each in reached for m in each.model.modules() if _is_frozen(m)}
        if not frozen:
            return
        drifting = [m for m in frozen.values() if m.training and m.track_running_stats]
        if not self._updates:
            self._began = {id(m): _weight(m).detach().clone() for m in drifting}
        drifting = [m for m in drifting if id(m) in self._began and torch.equal(_weight(m), self._began[id(m)])]
        self._updates = self._updates + 1 if drifting else 0
        where = reached[-1].where
        self.tell(FrozenNorms(frozen=len(frozen), drifting=len(drifting), updates=self._updates, where=where))


class Teachers(Recogniser):
    makes = (TeacherAnswered,)

    def begin(self) -> None:
        self._copies = self.fact(Copies)
        self._answers: list[_Answer] = []
        """Since the latest backward pass."""
        self._updates: Counter[int] = Counter()
        """Teacher's number to the updates in which it was in train mode."""

    def on_forward(self, event: Forward) -> None:
        if event.logits is not None and event.at.sampled:
            answer = _Answer(ref(event.model), event.logits.shape, event.logits.requires_grad, event.where)
            self._answers = [*self._answers[1 - HELD :], answer]

    def on_inner_forward(self, event: InnerForward) -> None:
        self.on_forward(event)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        taught = {each.shape for each in self._answers if each.gradients}
        teachers = {each.model: each.where for each in self._answers if not each.gradients and each.shape in taught}
        if not teachers or event.inside_step:
            return
        held = held_by_any(self.monitor.optimizers)
        copies = {id(each.copy()) for each in self._copies.all}
        for reference, where in teachers.items():
            model = reference()
            mine = set() if model is None else {id(p) for p in model.parameters()}
            if model is not None and mine and not mine & held and not mine & copies:
                self._tell_of(model, where)

    def on_backward(self, event: Backward) -> None:
        self._answers = []

    def _tell_of(self, teacher: nn.Module, where: str | None) -> None:
        active = [module for module in mode_dependent(teacher) if module.training]
        norms, number = sum(isinstance(module, _BatchNorm) for module in active), self.monitor.number_of(teacher)
        self._updates[number] += bool(active)
        self.tell(
            TeacherAnswered(
                teacher=type(teacher).__name__,
                norms=norms,
                dropouts=len(active) - norms,
                updates=self._updates[number],
                where=where,
            )
        )


def _is_frozen(module: nn.Module) -> bool:
    return isinstance(module, _BatchNorm) and module.affine and not module.weight.requires_grad


def _weight(module: nn.Module) -> torch.Tensor:
    return module.get_parameter("weight")


def _trainable(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def _has_gradients(model: nn.Module) -> bool:
    return any(p.grad is not None for p in model.parameters())


def _mostly_frozen(model: nn.Module) -> bool:
    """Whether nothing is trained, or so little that somebody may want the model to be in eval mode."""
    parameters = list(model.parameters())
    return sum(not p.requires_grad for p in parameters) > len(parameters) / 2 or not parameters
