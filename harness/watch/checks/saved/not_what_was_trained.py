from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.torch_objects import share_parameters
from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, FromPretrained, Load, Save
from harness.watch.facts.trained_models import ModelsFromCheckpoints, TrainedModels, all_equal, reached
from harness.watch.monitor import Monitor


class NotWhatWasTrained(Check):
    """What is saved, or evaluated after the training, does not have the weights that were trained.

    ## Why is this a bug?
    Several objects stand for one model: what was loaded, what `prepare` gave back, a wrapper, a copy. If the one that
    is saved is not the one that the optimizer changed, or is saved before the training, the file holds the checkpoint
    that the training began with, and a new head at random. The training's own results look right.

    ## What to do
    Save the model that was trained (with Accelerate: accelerator.unwrap_model(model)).

    Save it when the training is over, and load for the evaluation what was saved then.

    ## When it is right
    Saving the first weights as well as the trained ones is not reported, nor is a comparison with the checkpoint before
    the training; nor are models whose last tensors are frozen, such as a teacher that shares them.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/checkpoint
    """

    id = "saved::not-what-was-trained"
    needs = "model saved after its updates"
    formerly = ("saved::is-what-was-trained",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained = monitor.fact(TrainedModels)
        self.loaded = monitor.fact(ModelsFromCheckpoints)
        self.early: str | None = None
        """Where it was saved before the first update."""
        self.late = False
        """Whether it was saved after that."""
        self.loaded_any = False
        """Whether a state was loaded into a module."""
        self.originals: list[list[torch.Tensor]] = []
        """A few tensors of each checkpoint that the script began with."""
        self.reloaded: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Models with those very tensors that were loaded when updates had been made, and where."""
        self.untrained: list[str | None] = []
        """Where the first of those was loaded that were evaluated since the latest training; empty if none was."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        self.early = None  # what was saved is what is loaded now
        values = [value for _, value in self.loaded.spread[event.model]]
        if not self.monitor.stepped:
            self.originals.append(values)
        elif any(all_equal(values, first) for first in self.originals):
            self.reloaded[event.model] = event.where

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self.loaded_any = True
            self.reloaded.pop(event.into, None)

    def on_forward(self, event: Forward) -> None:
        if event.model in self.reloaded and not event.gradients and event.batch is not None and not self.untrained:
            self.untrained.append(self.reloaded[event.model])

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            self.reloaded.pop(model, None)
        if event.batch is not None:
            self.untrained.clear()  # a comparison before another training

    def on_save(self, event: Save) -> None:
        states = [event.what] if isinstance(event.what, nn.Module) else list(_states(event.what))
        if not states:
            return
        if self.monitor.update == 1:
            self.early = self.early or event.where
            return
        self.late = self.looked = True
        trained = list(self.trained.all)
        fresh = [model for model in self.loaded.as_loaded() if any(_is_of(state, model) for state in states)]
        trained_frozen = any(share_parameters(model, other) for model in fresh for other in trained)
        if fresh and trained and not trained_frozen:
            self.found(
                expected="the model that the updates changed",
                observed=f"{type(fresh[0]).__name__} as it was loaded from its checkpoint, without any update",
                where=event.where,
                update=self.monitor.updates_made,
            )

    def on_end(self, event: End) -> None:
        for where in self.untrained:
            self.found(
                expected="the model that was trained, in the evaluation after the training",
                observed="it has the weights of the checkpoint that the training began with",
                where=where,
                update=self.monitor.updates_made,
                hint="Load what was saved after the training.",
            )
        if self.monitor.complete and self.early and not self.late and not self.loaded_any and self.monitor.update > 2:
            self.found(
                expected="the model to be saved after its updates",
                observed="it was saved before the first one, and not again",
                where=self.early,
                update=1,
                hint="Save it when the training is over.",
            )


def _states(what: Any) -> list[Any]:
    """The modules' states within what is saved."""
    if not isinstance(what, Mapping):
        return []
    if any(torch.is_tensor(value) for value in what.values()):
        return [what]
    return [state for value in what.values() for state in _states(value)]


def _is_of(state: Any, model: nn.Module) -> bool:
    if isinstance(state, nn.Module):
        return state is model
    pointers = {p.data_ptr() for p in model.parameters()}
    return any(torch.is_tensor(value) and value.numel() and value.data_ptr() in pointers for value in state.values())
