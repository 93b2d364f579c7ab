from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by, raw_optimizer
from harness.watch.check import Check
from harness.watch.events import End, FromPretrained, Load, StepBegins
from harness.watch.facts.scheduler_ledger import ScheduleOver, SchedulerLedger, SchedulerSeen
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
    Loading only weights, to begin another training from them, is not reported: only a resumed optimizer or scheduler
    shows that the others should have been resumed too. `from_pretrained` also resumes a model if the checkpoint has all
    of its weights. A new schedule for an optimizer that goes on is a mistake only if it was made for more updates than
    are trained with it: one that ends with the training is a stage of its own.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    needs = "resumed optimizer or scheduler"
    formerly = ("saved::resumed-where-it-stopped",)
    explains = ("schedule::wrong-length", "schedule::may-be-too-long", "saved::not-what-was-trained")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.from_checkpoints = monitor.fact(ModelsFromCheckpoints)
        self.ledger = monitor.fact(SchedulerLedger)
        self.models: WeakSet[nn.Module] = WeakSet()
        """Those that a state was loaded into."""
        self.optimizers: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        """Updates that each had made in the state that was loaded into it."""
        self.loaded: WeakSet[Optimizer] = WeakSet()
        """Those that a state was loaded into; that of plain SGD has no moments."""
        self.schedulers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        """Steps that each had made."""
        self.with_new_weights: WeakSet[nn.Module] = WeakSet()
        """Those whose checkpoint does not have all of their weights: it is none that was saved of them."""
        self.begun_anew: list[tuple[SchedulerSeen, str, str | None, int]] = []
        """Schedulers at 0 of an optimizer that was resumed: what was observed, where, and in which update."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        if event.info.get("missing_keys"):
            self.with_new_weights.add(event.model)

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
            observed = f"the optimizer stands at update {made:.0f}, the model at its first weights"
            self._not_resumed(observed, event.where, event.update)
        for scheduler in schedulers:
            stands_at = getattr(scheduler, "last_epoch", 0)
            if made is not None and stands_at == 0 and scheduler not in self.schedulers:
                if seen := self.ledger.seen(scheduler):
                    observed = f"the optimizer stands at update {made:.0f}, its scheduler at 0"
                    self.begun_anew.append((seen, observed, event.where, event.update))
            elif self.schedulers.get(scheduler, 0) >= 1 and optimizer not in self.loaded and not optimizer.state:
                observed = f"the scheduler stands at {stands_at}, the optimizer has no moments"
                self._not_resumed(observed, event.where, event.update)

    def on_end(self, event: End) -> None:
        """A schedule that ends with what is trained now was made for it: it is a stage of its own."""
        for seen, observed, where, update in self.begun_anew:
            if _outlasts(self.ledger, seen):
                self._not_resumed(observed, where, update)

    def _is_at_its_first_weights(self, optimizer: Optimizer) -> bool:
        """Whether some of what it holds was neither loaded, nor in a checkpoint that has all of a model's weights, as
        the one that a training left has."""
        held = {id(p) for p in held_by(optimizer)}
        as_loaded = [model for model in self.from_checkpoints.as_loaded() if model not in self.models]
        unchanged = [model for model in as_loaded if any(id(p) in held for p in model.parameters())]
        whole = [*self.models, *(model for model in unchanged if model not in self.with_new_weights)]
        return bool(unchanged) and not held <= {id(p) for model in whole for p in model.parameters()}

    def _not_resumed(self, observed: str, where: str | None, update: int) -> None:
        self.found(
            expected="model, optimizer and scheduler, all as they were saved",
            observed=observed,
            where=where,
            update=update,
        )


def _outlasts(ledger: SchedulerLedger, seen: SchedulerSeen) -> bool:
    return ScheduleOver(seen=seen, training=ledger.training).outlasts_the_training()
