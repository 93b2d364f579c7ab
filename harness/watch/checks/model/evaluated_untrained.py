from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, FromPretrained, Load
from harness.watch.facts.trained_models import CalledModels, ModelsFromCheckpoints, all_equal, reached
from harness.watch.monitor import Monitor


class EvaluatedUntrained(Check):
    """The model that is evaluated after the training does not have the weights that were trained.

    ## Why is this a bug?
    An evaluation of the checkpoint that the training began with, or of a new model into which nothing was loaded, says
    nothing about the training; the reported numbers are those of another model.

    ## What to do
    Evaluate the model that was trained, or load into the one that is evaluated what was saved after the training.

    ## When it is right
    A comparison with the checkpoint before the training, or with an untrained model alongside the trained one, is not
    reported.
    """

    needs = "model that is called after the training"
    formerly = ("saved::not-what-was-trained", "saved::is-what-was-trained")
    explains = ("saved::not-what-was-evaluated", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loaded = monitor.fact(ModelsFromCheckpoints)
        self.called = monitor.fact(CalledModels)
        self.originals: list[list[torch.Tensor]] = []
        """A few tensors of each checkpoint that the script began with."""
        self.reloaded: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Models with those very tensors that were loaded when updates had been made, and where."""
        self.untrained: list[str | None] = []
        """Where the first of those was loaded that were evaluated since the latest training; empty if none was."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        values = [value for _, value in self.loaded.spread[event.model]]
        if not self.monitor.stepped:
            self.originals.append(values)
        elif any(all_equal(values, first) for first in self.originals):
            self.reloaded[event.model] = event.where

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            for module in event.into.modules() if self.reloaded else ():  # an adapter's state goes into what is around
                self.reloaded.pop(module, None)

    def on_forward(self, event: Forward) -> None:
        if event.model in self.reloaded and not event.gradients and event.batch is not None and not self.untrained:
            self.untrained.append(self.reloaded[event.model])

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            self.reloaded.pop(model, None)
        if event.batch is not None:
            self.untrained.clear()  # a comparison before another training

    def on_end(self, event: End) -> None:
        for where in self.untrained:
            self.found(
                expected="the model that was trained, in the evaluation after the training",
                observed="it has the weights of the checkpoint that the training began with",
                where=where,
                update=self.monitor.updates_made,
                hint="Load what was saved after the training.",
            )
        if self.monitor.complete:
            self._report_new()

    def _report_new(self) -> None:
        """Of the models that were called when the training was over, those of the kind that was trained."""
        called = [each for each in self.called.since.values() if each.of_trained_kind]
        self.looked |= bool(called)
        if called and all(each.untrained for each in called):
            self.found(
                expected="the model that was trained, in the evaluation after the training",
                observed=f"another of the same kind is called, which was never trained: {called[0].untrained}",
                where=called[0].where,
                update=self.monitor.updates_made,
            )
