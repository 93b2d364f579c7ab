from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import Backward, BackwardBegins, StepBegins, ZeroGrad
from harness.watch.facts.modes import Modes
from harness.watch.monitor import Monitor

KEPT = 8
"""Forwards that are remembered until an update uses their gradients."""


@dataclass(frozen=True)
class InEvalMode:
    """A model that the gradients at hand come from."""

    model: nn.Module
    where: str | None
    """Where it was called."""
    validates: bool
    """Whether it is trained over one DataLoader in train mode, and over this one in eval mode."""


class TrainingInEvalMode(Check):
    """A model is trained while it is in eval mode, so that dropout is off and batch statistics stand still.

    ## Why is this a bug?
    Without dropout a fine-tuned model overfits sooner, and batch normalisation keeps the statistics that it had.
    Usually the first epoch is correct, and all epochs after the first evaluation are not: `model.eval()` stays in force
    until `model.train()` is called again. `from_pretrained` returns a model in eval mode, too.

    ## What to do
    Call model.train() at the beginning of each epoch.

    If the updates are made over the validation DataLoader, take `backward()` and `step()` out of its loop: the model is
    trained on the rows that it should be measured on.

    ## When it is right
    Models without dropout and batch normalisation, models with more than half of their parameters frozen, and models
    with a part in train mode are not reported. Neither are backward passes that no update uses, such as those of an
    attack on the inputs, or a model that was never in train mode and has only batch normalisation: its statistics may
    be meant to stand still.

    ## References
    - https://github.com/ThilinaRajapakse/simpletransformers/issues/941
    - https://github.com/ThilinaRajapakse/simpletransformers/issues/739
    """

    needs = "dropout or normalisation"
    in_windows = "all"
    formerly = ("mode::training-in-train-mode",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.modes = monitor.fact(Modes)
        self.in_train_mode: WeakKeyDictionary[nn.Module, WeakSet[Any]] = WeakKeyDictionary()
        """Models that were trained in train mode, and the loaders over which they were."""
        self.in_eval_mode: list[InEvalMode] = []

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.in_eval_mode:  # gradients that were taken away without a call are not used any more
            self.in_eval_mode = [each for each in self.in_eval_mode if _has_gradients(each.model)]

    def on_backward(self, event: Backward) -> None:
        loader = None if event.batch is None else event.batch.of.loader
        for forward in event.forwards:
            if forward.number not in event.reached:
                continue
            self.looked |= bool(self.modes.sensitive(forward.model))
            if forward.model.training:
                loaders = self.in_train_mode.setdefault(forward.model, WeakSet())
                if loader is not None:
                    loaders.add(loader)
            elif self._is_at_fault(forward.model):
                others = self.in_train_mode.get(forward.model, ())
                found = InEvalMode(forward.model, forward.where, len(others) > 0 and loader not in (None, *others))
                self.in_eval_mode = [*self.in_eval_mode[1 - KEPT :], found]

    def _is_at_fault(self, model: nn.Module) -> bool:
        sensitive = self.modes.sensitive(model)
        if not sensitive or any(module.training for module in sensitive) or _mostly_frozen(model):
            return False
        frozen_statistics = all(isinstance(module, _BatchNorm) for module in sensitive)
        return not frozen_statistics or model in self.in_train_mode

    def on_zero_grad(self, event: ZeroGrad) -> None:
        self.in_eval_mode = []

    def on_step_begins(self, event: StepBegins) -> None:
        if not self.in_eval_mode:
            return
        held = {id(p) for p in held_by(event.optimizer)}
        for each in self.in_eval_mode:
            if any(id(p) in held for p in _trainable(each.model)):
                self._found(each, event.update)
        self.in_eval_mode = []

    def _found(self, of: InEvalMode, update: int) -> None:
        observed = (
            f"{type(of.model).__name__} is in eval mode: none of its {len(self.modes.sensitive(of.model))} dropout or "
            "normalisation modules works"
        )
        hint = None
        if of.validates:
            observed += "; the DataLoader is not one over which it is trained in train mode: updates in the validation?"
            hint = (
                "Take backward() and step() out of the validation's loop; if it is a training loop, call model.train()."
            )
        self.found(
            expected="model.train() before the updates, and again after each evaluation",
            observed=observed,
            where=of.where,
            update=update,
            hint=hint,
        )


def _trainable(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def _has_gradients(model: nn.Module) -> bool:
    return any(p.grad is not None for p in model.parameters())


def _mostly_frozen(model: nn.Module) -> bool:
    """Whether nothing is trained, or so little that somebody may want the model to be in eval mode."""
    parameters = list(model.parameters())
    return sum(not p.requires_grad for p in parameters) > len(parameters) / 2 or not parameters
