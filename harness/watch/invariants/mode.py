"""Mode: dropout and normalisation are in train mode for updates, in eval mode and without a graph for evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from harness.watch.events_old import Backward, Forward, Pass
from harness.watch.observer import Invariant, Observer, Statement


@dataclass
class Evaluated:
    """The first forward of a pass that may be an evaluation."""

    training: bool
    active: int
    """Modules that behave otherwise in train mode, and are."""
    gradients: bool
    where: str | None


class Mode(Invariant):
    checks = (
        Statement("mode::training-in-train-mode", "A model is in train mode while it is trained."),
        Statement("mode::evaluation-in-eval-mode", "A model is in eval mode while it is evaluated."),
        Statement("mode::evaluation-without-graph", "An evaluation keeps no graph for a backward pass."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.first: WeakKeyDictionary[Pass, Evaluated] = WeakKeyDictionary()
        self.sensitive: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()
        self.trained_on: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()

    def _sensitive(self, model: nn.Module) -> list[nn.Module]:
        """The modules that behave otherwise in train mode."""
        found = self.sensitive.get(model)
        if found is None:
            found = [
                module
                for module in model.modules()
                if (isinstance(module, _DropoutNd) and module.p > 0)
                or isinstance(module, _BatchNorm)
                or (isinstance(module, nn.RNNBase) and module.dropout > 0 and module.num_layers > 1)
            ]
            self.sensitive[model] = found
        return found

    def forward(self, event: Forward) -> None:
        if event.batch is None:
            return
        seen = self.first.get(event.batch.of)
        if seen is None:
            active = sum(module.training for module in self._sensitive(event.model))
            seen = Evaluated(event.model.training, active, event.gradients, event.where)
            self.first[event.batch.of] = seen

    def backward(self, event: Backward) -> None:
        for forward in event.forwards:
            if forward.number not in event.reached or forward.model.training:
                continue
            sensitive = self._sensitive(forward.model)
            trainable = any(p.requires_grad for p in forward.model.parameters())
            if sensitive and trainable and not any(module.training for module in sensitive):
                if _backbone_frozen(forward.model):
                    continue
                self.found(
                    "mode::training-in-train-mode",
                    expected="model.train() before the updates, and again after each evaluation",
                    observed=f"{type(forward.model).__name__} is in eval mode: none of its {len(sensitive)} dropout or "
                    "normalisation modules works",
                    hint="Call model.train() at the beginning of each epoch.",
                    where=forward.where,
                    update=self.observer.update,
                )

    def pass_ends(self, event: Pass) -> None:
        if event.trains:
            self.trained_on[event.loader] = True
            return
        seen = self.first.get(event)
        if seen is None or self.trained_on.get(event.loader):
            return
        if event.batches == 1 and event.planned != 1:
            return  # a look at one batch
        repeated = event.forwards > event.batches
        if seen.training and seen.active and not repeated:
            self.found(
                "mode::evaluation-in-eval-mode",
                expected="model.eval() before the evaluation",
                observed=f"the model is in train mode, and {seen.active} of its dropout or normalisation modules work",
                hint="Call model.eval() before the evaluation, and model.train() after it.",
                where=seen.where,
            )
        if seen.gradients:
            self.found(
                "mode::evaluation-without-graph",
                expected="torch.no_grad() or torch.inference_mode() around the evaluation",
                observed="the outputs carry a graph for a backward pass that never comes",
                hint="Put the evaluation's forward under torch.no_grad(): it needs much less memory.",
                where=seen.where,
            )


def _backbone_frozen(model: nn.Module) -> bool:
    """Whether most of the model is frozen, so that somebody may want it to be in eval mode."""
    parameters = list(model.parameters())
    return sum(not p.requires_grad for p in parameters) > len(parameters) / 2
