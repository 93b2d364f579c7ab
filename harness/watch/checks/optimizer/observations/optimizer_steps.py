"""Optimizer steps: which optimizers make them, with what, and whether there are any."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by
from harness.watch.bounded import Latest
from harness.watch.events import Backward, Batch, End, Fact, Load, Step, StepBegins, TrainerMade
from harness.watch.facts.gradient_ledger import rows_of
from harness.watch.facts.parameters import Parameters
from harness.watch.recogniser import Recogniser

FEWEST_BACKWARD_PASSES = 4
"""Backward passes without any update from which on that is no accident."""

FEWEST_CLEARED = 16
"""Calls of an optimizer's zero_grad without a step of it from which on a step is missing. An optimizer that steps once
in several batches does so within these."""

NO_STAGE = 10
"""Updates by hand-made batches that are no stage of a training yet, after which another begins. Half or double of it
changes verdicts (scripts/records/margins.json)."""

ASKED = {"learning_rate": ("initial_lr", "lr"), "weight_decay": ("weight_decay",)}
"""Settings of TrainingArguments that make the optimizer, and under which keys its groups have them."""


class HeldByAll(Fact):
    """A run with optimizer steps is over. ``where`` made the first optimizer that had nothing to change in a step."""

    needs = "optimizer step"
    of_run = True
    only_frozen: bool = False
    """Whether all that its optimizers hold is frozen, and nothing else makes updates."""
    update: int | None = None
    """The first update in which an optimizer had nothing to change."""


class BackwardWithoutOptimizer(Fact):
    """A run without an optimizer is over. At ``where`` the same rows went through a backward pass again."""

    needs = "backward pass without an optimizer"
    of_run = True
    passes: int
    meant: bool
    """Whether the script updates parameters itself, or asks for gradients of inputs."""


class StepsMade(Fact):
    """A run is over that had an optimizer, and backward passes for a step. ``where`` made the latest optimizer."""

    needs = "backward pass with an optimizer"
    of_run = True
    any_step: bool
    """Whether any optimizer made one, or the script its own updates."""
    passes: int = 1
    """Backward passes."""


class OptimizerUnused(Fact):
    """An optimizer whose gradients are cleared made no step in a run, others did. ``where`` is where it was made."""

    of_run = True
    shown: str
    """A few of its tensors, which nothing changes, by their names."""


class OptimizerMadeAgain(Fact):
    """An optimizer over the same parameters was made at the same line as one before, in mid-training."""

    in_windows = "all"
    optimizer: str
    """The name of its class."""


class StateCounted(Fact):
    """An optimizer whose state counts its steps is about to make another."""

    needs = "second update of an optimizer that counts its steps"
    in_windows = "all"
    before: float
    """The steps that a tensor's state had counted after the latest one that was looked at."""
    emptied: bool
    """Whether the states of all tensors count fewer now."""


@dataclass(frozen=True)
class Setting:
    """One of TrainingArguments that is not its default, beside the optimizer that Trainer was given."""

    name: str
    asked: float
    has: Sequence[Any]
    """Value in each group of the optimizer."""
    where: str | None = None
    """The line that says it; None where that is not known."""


class OptimizerGiven(Fact):
    """Trainer was given an optimizer, and makes none of its own."""

    needs = "Trainer that is given an optimizer"
    in_windows = "first"
    of_run = True
    settings: Sequence[Setting] = ()


@dataclass(eq=False)
class Made:
    """An optimizer that made steps, which may be gone."""

    stack: tuple[tuple[str, int], ...]
    """The user's lines that led to its making."""
    held: list[ref[torch.Tensor]]
    defaults: dict[str, Any]
    """Defaults that are plain values, and the optimizer's class."""
    dataset: Callable[[], Any]
    """A weak reference to what its first batch came from; gives None where that is not known."""
    updates: int = 0
    of_loaders: int = 0
    """Updates by a batch that a DataLoader had given for them."""
    passes: int = 0
    """Over DataLoaders, that these batches came from."""
    latest: tuple[int, int] = (-1, -1)
    """The latest of these batches: the updates that were made when its pass began, and its number."""

    def count(self, batch: Batch | None) -> None:
        """An update more."""
        self.updates += 1
        if batch is None or batch.number == self.latest[1]:
            return  # made by hand, if of one that was taken out before
        self.of_loaders += 1
        self.passes += batch.of.updates_before != self.latest[0]
        self.latest = batch.of.updates_before, batch.number

    @property
    def was_short(self) -> bool:
        """Whether that is too little for a stage: one pass, or a few hand-made batches."""
        return self.passes == 1 if 2 * self.of_loaders > self.updates else self.updates <= NO_STAGE

    def held_the_same(self, tensors: list[torch.Tensor]) -> bool:
        return len(self.held) == len(tensors) and all(mine() is p for mine, p in zip(self.held, tensors, strict=True))


class OptimizerSteps(Recogniser):
    makes = (HeldByAll, BackwardWithoutOptimizer, StepsMade, OptimizerUnused)

    def begin(self) -> None:
        self._parameters = self.fact(Parameters)
        self._frozen: tuple[str | None, int] | None = None
        """The first optimizer that stepped with nothing to change: where it was made, and in which update."""
        self._trains = False
        """Whether any optimizer stepped with something to change."""
        self._passes = 0
        self._first_rows: Hashable = None
        """What the first backward pass was of."""
        self._again: str | None = None
        """Where the same rows were gone through once more."""
        self._of_inputs = False
        """Whether gradients of inputs are computed, and not only those of parameters."""

    def on_step_begins(self, event: StepBegins) -> None:
        if self._trains:
            return
        held = held_by(event.optimizer)
        self._trains = any(p.requires_grad or p.grad is not None for p in held)
        if held and not self._trains and self._frozen is None:
            self._frozen = event.made, event.update

    def on_backward(self, event: Backward) -> None:
        self._passes += 1
        if self.monitor.has_optimizer or self._of_inputs:
            return
        self._of_inputs = any(t.requires_grad for f in event.forwards for t in f.tensors.values())
        reached = [forward.model for forward in event.forwards if forward.number in event.reached]
        rows = rows_of(event)
        known = self._first_rows == rows or (event.batch is not None and event.batch.of.number > 1)
        self._first_rows = self._first_rows or rows
        enough = self._passes >= FEWEST_BACKWARD_PASSES
        if enough and known and any(_has_gradients(m) for m in reached if m.training):
            self._again = event.where

    def on_end(self, event: End) -> None:
        made_at, by_hand = self.monitor.optimizer_made_at, self.monitor.updated_by_hand or self._parameters.by_hand
        stepped = self.monitor.stepped and self.monitor.has_optimizer
        if stepped:
            only_frozen = self._frozen is not None and not self._trains and event.at.complete and not by_hand
            where, update = self._frozen if self._frozen is not None and only_frozen else (None, None)
            self.tell(HeldByAll(only_frozen=only_frozen, update=update, where=where))
        elif not made_at and self._again is not None:
            meant = self._of_inputs or by_hand
            self.tell(BackwardWithoutOptimizer(passes=self._passes, meant=meant, where=self._again))
        if stepped or (made_at and self._passes >= FEWEST_BACKWARD_PASSES):
            where = made_at[-1] if made_at else None
            self.tell(StepsMade(any_step=stepped or by_hand, passes=self._passes, where=where))
        if stepped and event.at.complete and not by_hand:
            self._tell_of_unused()

    def _tell_of_unused(self) -> None:
        """Tell of each optimizer that takes part in the loop and makes no step, while others do."""
        seen = self._parameters
        updated = {each for held in seen.optimizers if held.stepped for each in held.all}
        for held in seen.optimizers:
            if not held.stepped and held.cleared >= FEWEST_CLEARED and held.reached and not updated & held.all:
                self.tell(OptimizerUnused(shown=seen.shown(held.all), where=held.made))


class OptimizersMade(Recogniser):
    makes = (OptimizerMadeAgain, StateCounted, OptimizerGiven)

    def begin(self) -> None:
        self._made = Latest[Made]()  # a loop that makes them again shows in three
        self._going: WeakKeyDictionary[Optimizer, Made] = WeakKeyDictionary()
        self._counted: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        """How many steps a tensor's state had counted after the optimizer's latest one that was looked at."""

    def on_trainer_made(self, event: TrainerMade) -> None:
        optimizer, args = getattr(event.trainer, "optimizer", None), event.trainer.args
        groups = getattr(optimizer, "param_groups", None)
        if not groups:
            return
        settings = []
        for name, keys in ASKED.items():
            asked = getattr(args, name, None)
            if asked is not None and asked != _default(args, name):
                has = [next((group[key] for key in keys if key in group), None) for group in groups]
                settings.append(Setting(name, asked, has, self.monitor.locator.argument(name)))
        self.tell(OptimizerGiven(settings=settings, where=event.where))

    def on_step_begins(self, event: StepBegins) -> None:
        before = self._counted.get(event.optimizer) if event.sampled else None
        if before is not None:
            emptied = all(count < before for count in _counts(event.optimizer))  # mostly the first one is not
            self.tell(StateCounted(before=before, emptied=emptied, where=event.where))

    def on_step(self, event: Step) -> None:
        count = next(_counts(event.optimizer), None) if event.sampled else None
        if count is not None:
            self._counted[event.optimizer] = count
        if event.number == 1 and any(event.optimizer.state.values()):
            self._compare(event)
        made = self._going.get(event.optimizer)
        if made is not None:
            made.count(event.batch)

    def _compare(self, event: Step) -> None:
        """Compare an optimizer with those that were made at the same line before."""
        optimizer, seen = event.optimizer, self.monitor.optimizers[event.optimizer]
        if seen.stack is None:
            return
        held = held_by(optimizer)
        defaults = {"class": type(optimizer)} | {k: v for k, v in optimizer.defaults.items() if _is_plain(v)}
        dataset = _weakly(None if event.batch is None else event.batch.of.dataset)
        alike = [
            earlier
            for earlier in self._made
            if earlier.stack == seen.stack and earlier.held_the_same(held) and earlier.dataset() is dataset()
        ]
        short = bool(alike) and alike[-1].was_short
        # Another learning rate may be another stage of the training; a third one is a loop's.
        if short and (len(alike) > 1 or any(earlier.defaults == defaults for earlier in alike)):
            self.tell(OptimizerMadeAgain(optimizer=type(optimizer).__name__, where=seen.made))
        self._going[optimizer] = Made(seen.stack, [ref(p) for p in held], defaults, dataset)
        self._made.append(self._going[optimizer])

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self._made.clear()
        elif isinstance(event.into, Optimizer):
            self._counted.pop(event.into, None)


def _weakly(dataset: Any) -> Callable[[], Any]:
    try:
        return ref(dataset)
    except TypeError:  # None, or a plain list
        return lambda: None


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, tuple, type(None)))


def _counts(optimizer: Optimizer) -> Iterator[float]:
    """The steps that its state counts, tensor by tensor, each read when it is asked for: it may lie on a device."""
    states = (optimizer.state.get(p, {}) for p in held_by(optimizer))
    return (float(state["step"]) for state in states if "step" in state)


def _has_gradients(model: nn.Module) -> bool:
    return any(p.grad is not None and bool(p.grad.any()) for p in model.parameters())


def _default(args: Any, name: str) -> Any:
    return next((field.default for field in dataclasses.fields(args) if field.name == name), None)
