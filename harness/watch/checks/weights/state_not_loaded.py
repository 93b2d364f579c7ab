from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet, ref

import torch
from torch import nn

from harness.torch_objects import held_by, share_parameters
from harness.watch.check import Check
from harness.watch.events import End, Forward, Load, LoadBegins, Save, StateAsked
from harness.watch.facts.trained_models import TrainedModels
from harness.watch.monitor import Monitor

MIN_SHARE = 0.5
"""Smallest share of tensors that says what a state is: of the module's parameters whose memory it shares to be the
module's own, of its tensors that have a place in the module to be meant for it. A guess."""

MOST_UNUSED = 64
"""Modules that wait to be used, the latest of those into which a state was loaded. A guess: one or two are usual."""


@dataclass(eq=False)
class Unused:
    """A module that a state was loaded into, and that has never been used."""

    module: ref[nn.Module]
    name: str
    where: str | None
    update: int
    passed_over: bool = False
    """Whether another model was used since."""

    def is_part_of(self, model: nn.Module) -> bool:
        """Whether it is a module of the model, or has parameters of it."""
        module = self.module()
        if module is None:
            return False
        return any(module is each for each in model.modules()) or share_parameters(module, model)


@dataclass(frozen=True)
class Asked:
    """A state that a module was asked for, as it was then."""

    state: ref[Any]
    steps: int
    """Of optimizers that hold tensors of the module."""
    writes: int
    """Into tensors of the module."""


class StateNotLoaded(Check):
    """A state is loaded, and the model that goes on does not have it.

    ## Why is this a bug?
    `load_state_dict(..., strict=False)` lets every name go that does not fit, and if none does, the module keeps the
    weights that it had. A state that was kept as `best = model.state_dict()` is no copy: its tensors are the model's,
    and went along with every update. And a state that is loaded into another model of the same class changes nothing in
    the one that is trained or evaluated.

    ## What to do
    Compare the names (a prefix such as module. or model.), and load with strict=True.

    Keep the best state as `copy.deepcopy(model.state_dict())`, and load it into the model that is used.

    ## When it is right
    Loading a part of a state with strict=False is not reported as long as half of its tensors have a place, or half of
    the module's own are in it, nor is a state that the script itself writes to in place, such as an average, before it
    loads it; nor is a second model that is used in any way, before or after (a target network that is brought up to
    date once more when the training is over), nor what a script loads last of all.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    id = "weights::state-not-loaded"
    needs = "state loaded into a model"
    formerly = ("identity::state-was-loaded",)
    explains = ("saved::resumed-incompletely", "saved::not-what-was-trained", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained = monitor.fact(TrainedModels)
        self.unused: deque[Unused] = deque(maxlen=MOST_UNUSED)
        self.used: WeakSet[nn.Module] = WeakSet()
        self.asked: deque[Asked] = deque(maxlen=MOST_UNUSED)

    def on_load_begins(self, event: LoadBegins) -> None:
        """Before it happens: a state that shares its memory with the model restores nothing."""
        if not isinstance(event.into, nn.Module) or self.monitor.update == 1:
            return
        own = dict(event.into.named_parameters())
        shared = [
            name
            for name, value in event.state.items()
            if name in own and torch.is_tensor(value) and value.data_ptr() == own[name].data_ptr() and value.numel()
        ]
        if shared and len(shared) >= MIN_SHARE * len(own) and not self._is_written(event):
            self.found(
                expected="a copy of the weights as they were",
                observed="the state shares its memory with the model: it went along with every update",
                where=event.where,
                update=self.monitor.updates_made,
                hint="Keep copy.deepcopy(model.state_dict()), or save it to a file; where two networks are meant, "
                "make the second one with copy.deepcopy(model).",
            )

    def _is_written(self, event: LoadBegins) -> bool:
        """Whether it was the script that changed the state since it was asked for, and no update."""
        asked = next((each for each in self.asked if each.state() is event.state), None)
        if asked is None:
            return False
        return asked.steps == self._steps(event.into) and asked.writes < _writes(event.into)

    def _steps(self, module: nn.Module) -> int:
        own = {id(p) for p in module.parameters()}
        optimizers = list(self.monitor.optimizers.items())
        return sum(seen.steps for optimizer, seen in optimizers if any(id(p) in own for p in held_by(optimizer)))

    def on_load(self, event: Load) -> None:
        if not isinstance(event.into, nn.Module) or not event.state:
            return
        self.looked = True
        name = type(event.into).__name__
        loaded = Unused(ref(event.into), name, event.where, max(1, self.monitor.updates_made))
        if event.into not in self.used and not any(map(loaded.is_part_of, self.used)):
            self.unused.append(loaded)
        fitting, own = len(event.state) - len(event.unexpected), _names(event.into)
        if event.strict or fitting >= MIN_SHARE * min(len(event.state), len(own)):
            return
        self.found(
            expected="a state whose names are the module's",
            observed=f"{fitting} of its {len(event.state)} tensors have a place in {name}; "
            "strict=False lets the others go",
            where=event.where,
        )

    def on_forward(self, event: Forward) -> None:
        self._use(event.model)

    def on_state_asked(self, event: StateAsked) -> None:
        self._use(event.module)
        if isinstance(event.state, OrderedDict):
            self.asked.append(Asked(ref(event.state), self._steps(event.module), _writes(event.module)))

    def on_save(self, event: Save) -> None:
        if isinstance(event.what, nn.Module):
            self._use(event.what)

    def _use(self, model: nn.Module) -> None:
        if model not in self.used:
            self.used.add(model)
            self.unused = deque((each for each in self.unused if not each.is_part_of(model)), MOST_UNUSED)
        for each in self.unused:
            each.passed_over = True

    def on_end(self, event: End) -> None:
        names = {type(model).__name__ for model in self.trained.all}
        for each in self.unused if self.monitor.complete else ():
            if each.passed_over and each.name in names and not any(map(each.is_part_of, self.trained.all)):
                self.found(
                    expected="a state that is loaded into the model that goes on",
                    observed=f"it was loaded into another {each.name}, which nobody used afterwards",
                    where=each.where,
                    update=each.update,
                    hint="Load it into the model that is trained or evaluated, not into a copy of it.",
                )


def _writes(module: nn.Module) -> int:
    return sum(p._version for p in module.parameters() if not p.is_inference())


def _names(module: nn.Module) -> set[str]:
    """Of its parameters and buffers."""
    return {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
