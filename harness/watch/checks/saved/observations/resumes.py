"""Resumes: whether model, optimizer and scheduler go on from where they were saved."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by, raw_optimizer
from harness.watch.events import End, Fact, FileRead, FromPretrained, Load, Renamed, Save, StepBegins
from harness.watch.facts.scheduler_ledger import ScheduleOver, SchedulerLedger, SchedulerSeen
from harness.watch.facts.trained_models import ModelsFromCheckpoints, TrainedModels
from harness.watch.recogniser import Recogniser


class _OptimizerSaved(NamedTuple):
    """The state of an optimizer in a file."""

    tensors: int
    updates: float
    """Made when it was saved."""


class TrainingResumed(Fact):
    """An optimizer or a scheduler goes on from a state that was loaded into it. ``where`` is its first step."""

    needs = "resumed optimizer or scheduler"
    apart: str | None = None
    """Which of model, optimizer and scheduler stand elsewhere than the others, and where."""
    update: int = 1
    may_be_meant: bool = False
    """Whether it may be another training that begins with the weights of the one before."""


class Resumes(Recogniser):
    makes = (TrainingResumed,)

    def begin(self) -> None:
        self._from_checkpoints = self.fact(ModelsFromCheckpoints)
        self._ledger = self.fact(SchedulerLedger)
        self._trained = self.fact(TrainedModels)
        self._before_training: WeakSet[nn.Module] = WeakSet()
        """Models with a loaded state that had not been trained by then."""
        self._models: WeakSet[nn.Module] = WeakSet()
        """Models that a state was loaded into."""
        self._optimizers: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        """Updates that each had made in the state that was loaded into it."""
        self._loaded: WeakSet[Optimizer] = WeakSet()
        """Optimizers that a state was loaded into; that of plain SGD has no moments."""
        self._schedulers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        """Steps that each had made."""
        self._with_new_weights: WeakSet[nn.Module] = WeakSet()
        """Models whose checkpoint does not have all of their weights: it is none that was saved of them."""
        self._begun_anew: list[tuple[SchedulerSeen, str, str | None, int]] = []
        """Schedulers at 0 of an optimizer that was resumed: what was observed, where, and in which update."""
        self._read: dict[str, _OptimizerSaved] = {}
        """File to the optimizer whose state was read from it."""
        self._saved: set[str] = set()
        """Files that the state of an optimizer was written to since the latest was read."""
        self._without_state: list[tuple[str, _OptimizerSaved, str | None, int]] = []
        """Optimizers that began without the state that was read with the weights: from which file, where, in which
        update."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        if event.info.get("missing_keys"):
            self._with_new_weights.add(event.model)

    def on_file_read(self, event: FileRead) -> None:
        for saved in _optimizers_in(event.found) if event.path is not None else ():
            self._read[str(event.path)] = saved
            self._saved.clear()

    def on_save(self, event: Save) -> None:
        if event.path is not None and any(_optimizers_in(event.what)):
            self._saved.add(event.path)

    def on_renamed(self, event: Renamed) -> None:
        if event.source in self._saved:
            self._saved.add(event.target)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self._models.add(event.into)
            if event.into not in self._trained.all:  # a trained one may go back to its best, for another stage
                self._before_training.add(event.into)
        elif isinstance(event.into, Optimizer):
            self._loaded.add(event.into)
            states = event.state.get("state", {})
            steps = [float(s["step"]) for s in states.values() if isinstance(s, Mapping) and "step" in s]
            if max(steps, default=0.0) >= 1:
                self._optimizers[event.into] = max(steps)
        elif "last_epoch" in event.state:
            self._schedulers[event.into] = int(event.state["last_epoch"])

    def on_step_begins(self, event: StepBegins) -> None:
        optimizer = event.optimizer
        if event.number != 1:
            return
        schedulers = [each for each in self.monitor.find_schedulers() if raw_optimizer(each.optimizer) is optimizer]
        made = self._optimizers.get(optimizer)
        if made is not None or self._schedulers:
            self.tell(TrainingResumed(where=event.where))
        if made is not None and self._is_at_its_first_weights(optimizer):
            observed = f"the optimizer stands at update {made:.0f}, the model at its first weights"
            self.tell(TrainingResumed(apart=observed, update=event.update, where=event.where))
        for scheduler in schedulers:
            stands_at = getattr(scheduler, "last_epoch", 0)
            if made is not None and stands_at == 0 and scheduler not in self._schedulers:
                if seen := self._ledger.seen(scheduler):
                    observed = f"the optimizer stands at update {made:.0f}, its scheduler at 0"
                    self._begun_anew.append((seen, observed, event.where, event.update))
            elif self._schedulers.get(scheduler, 0) >= 1 and optimizer not in self._loaded and not optimizer.state:
                observed = f"the scheduler stands at {stands_at}, the optimizer has no moments"
                self.tell(TrainingResumed(apart=observed, update=event.update, where=event.where))

        if optimizer not in self._loaded and not optimizer.state:
            self._look_for_its_state(event)

    def _look_for_its_state(self, event: StepBegins) -> None:
        """Whether its state was read with the weights that were loaded into its model."""
        held = held_by(event.optimizer)
        mine = {id(p) for p in held}
        if any(not mine.isdisjoint(map(id, model.parameters())) for model in self._before_training):
            for path, saved in self._read.items():
                if saved.tensors == len(held):
                    self._without_state.append((path, saved, event.where, event.update))

    def on_end(self, event: End) -> None:
        """A schedule that ends with what is trained now was made for it: it is a stage of its own.

        Weights alone begin another training, unless the script goes on to save to the files that it read.
        """
        own = {_without_numbers(path) for path in self._saved}
        for path, saved, where, update in self._without_state:
            if _without_numbers(path) in own:
                file, after = os.path.basename(path), f"after update {saved.updates:.0f}"
                observed = f"{file} has the optimizer's state {after}, which nothing loads"
                self.tell(TrainingResumed(apart=observed, update=update, may_be_meant=True, where=where))
        for seen, observed, where, update in self._begun_anew:
            if ScheduleOver(seen=seen, training=self._ledger.training).outlasts_the_training():
                self.tell(TrainingResumed(apart=observed, update=update, where=where))

    def _is_at_its_first_weights(self, optimizer: Optimizer) -> bool:
        """Whether some of what it holds was neither loaded, nor in a checkpoint that has all of a model's weights, as
        the one that a training left has."""
        held = {id(p) for p in held_by(optimizer)}
        as_loaded = [model for model in self._from_checkpoints.as_loaded() if model not in self._models]
        unchanged = [model for model in as_loaded if any(id(p) in held for p in model.parameters())]
        whole = [*self._models, *(model for model in unchanged if model not in self._with_new_weights)]
        return bool(unchanged) and not held <= {id(p) for model in whole for p in model.parameters()}


def _optimizers_in(found: Any, deep: int = 2) -> Iterator[_OptimizerSaved]:
    """The states of optimizers that a file holds, of updates that left something in them."""
    if not isinstance(found, Mapping):
        return
    states, groups = found.get("state"), found.get("param_groups")
    if isinstance(states, Mapping) and isinstance(groups, list):
        steps = [float(each["step"]) for each in states.values() if isinstance(each, Mapping) and "step" in each]
        if max(steps, default=0.0) >= 1:
            yield _OptimizerSaved(sum(len(group["params"]) for group in groups), max(steps))
    elif deep:
        for each in found.values():
            yield from _optimizers_in(each, deep - 1)


def _without_numbers(path: str) -> str:
    """A checkpoint's path, whichever epoch or update is in its name."""
    return re.sub(r"\d+", "#", os.path.basename(path))
