from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import nn

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import LoadBegins, StateAsked
from harness.watch.monitor import Monitor

MIN_SHARE = 0.5
"""Smallest share of a module's parameters whose memory a state shares that makes it the module's own. Neither half nor
double of it changes a verdict of the corpus."""

MOST_ASKED = 64
"""States that are remembered, the latest. One or two are usual. Neither half nor double of it changes a verdict of the
corpus."""


@dataclass(frozen=True)
class Asked:
    """A state that a module was asked for, as it was then."""

    state: ref[Any]
    steps: int
    """Of optimizers that hold tensors of the module."""
    writes: int
    """Into tensors of the module."""


class StateKeptWithoutCopy(Check):
    """A state that is loaded shares its memory with the model: it was kept without a copy, and restores nothing.

    ## Why is this a bug?
    `best = model.state_dict()` is not a copy: its tensors are the model's, and every update has changed them. Loading
    it gives the model the weights that it already has, those of the last update and not of the best one.

    ## What to do
    Keep copy.deepcopy(model.state_dict()), or save it to a file; where two networks are meant, make the second one with
    copy.deepcopy(model).

    ## When it is right
    A state that the script itself writes to in place, such as an average, before it loads it, is not reported.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    needs = "state loaded into a model"
    formerly = ("weights::state-not-loaded", "identity::state-was-loaded")
    explains = ("saved::resumed-incompletely", "saved::not-what-was-trained", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.asked: deque[Asked] = deque(maxlen=MOST_ASKED)

    def on_load_begins(self, event: LoadBegins) -> None:
        if not isinstance(event.into, nn.Module):
            return
        self.looked = True
        if self.monitor.update == 1:
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
            )

    def on_state_asked(self, event: StateAsked) -> None:
        if isinstance(event.state, OrderedDict):
            self.asked.append(Asked(ref(event.state), self._steps(event.module), _writes(event.module)))

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


def _writes(module: nn.Module) -> int:
    return sum(p._version for p in module.parameters() if not p.is_inference())
