from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by, raw_optimizer
from harness.watch.check import Check
from harness.watch.events import Load, StepBegins
from harness.watch.facts.trained_models import ModelsFromCheckpoints
from harness.watch.monitor import Monitor


class ResumedIncompletely(Check):
    """A training is resumed with a part of its state: of model, optimizer and scheduler one begins anew.

    ## Why is this a bug?
    An optimizer without its moments makes first updates that are far too large; a scheduler at 0 warms up and decays a
    second time; a model at its first weights, with the moments and the learning rate of the end, is hardly trained at
    all. The resumed run does not crash: its loss has a bump, or is a little worse in the end.

    ## What to do
    Save and load the state_dict() of all three.

    ## When it is right
    Loading weights alone, to begin another training from them, is not reported: only an optimizer or a scheduler that
    was resumed shows that the others should have been.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    id = "saved::resumed-incompletely"
    needs = "resumed optimizer or scheduler"
    formerly = ("saved::resumed-where-it-stopped",)
    explains = ("schedule::wrong-length", "schedule::may-be-too-long", "saved::not-what-was-trained")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.from_checkpoints = monitor.fact(ModelsFromCheckpoints)
        self.models: WeakSet[nn.Module] = WeakSet()
        """Those that a state was loaded into."""
        self.optimizers: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        """Updates that each had made in the state that was loaded into it."""
        self.loaded: WeakSet[Optimizer] = WeakSet()
        """Those that a state was loaded into; that of plain SGD has no moments."""
        self.schedulers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        """Steps that each had made."""

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self.models.add(event.into)
        elif isinstance(event.into, Optimizer):
            self.loaded.add(event.into)
            states = event.state.get("state", {})
            steps = [float(s["step"]) for s in states.values() if isinstance(s, Mapping) and "step" in s]
            if max(steps, default=0.0) >= 1:
                self.optimizers[event.into] = max(steps)
        elif "last_epoch" in event.state:
            self.schedulers[event.into] = int(event.state["last_epoch"])

    def on_step_begins(self, event: StepBegins) -> None:
        optimizer = event.optimizer
        if event.number != 1:
            return
        schedulers = [each for each in self.monitor.find_schedulers() if raw_optimizer(each.optimizer) is optimizer]
        made = self.optimizers.get(optimizer)
        self.looked |= made is not None or bool(self.schedulers)
        if made is not None and self._is_at_its_first_weights(optimizer):
            self._not_resumed(f"the optimizer stands at update {made:.0f}, the model at its first weights", event)
        for scheduler in schedulers:
            stands_at = getattr(scheduler, "last_epoch", 0)
            if made is not None and stands_at == 0 and scheduler not in self.schedulers:
                self._not_resumed(f"the optimizer stands at update {made:.0f}, its scheduler at 0", event)
            elif self.schedulers.get(scheduler, 0) >= 1 and optimizer not in self.loaded and not optimizer.state:
                self._not_resumed(f"the scheduler stands at {stands_at}, the optimizer has no moments", event)

    def _is_at_its_first_weights(self, optimizer: Optimizer) -> bool:
        held = {id(p) for p in held_by(optimizer)}
        return any(
            model not in self.models and any(id(p) in held for p in model.parameters())
            for model in self.from_checkpoints.as_loaded()
        )

    def _not_resumed(self, observed: str, event: StepBegins) -> None:
        self.found(
            expected="model, optimizer and scheduler, all as they were saved",
            observed=observed,
            where=event.where,
            update=event.update,
        )
