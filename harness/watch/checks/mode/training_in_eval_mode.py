from __future__ import annotations

from weakref import WeakSet

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import Backward, BackwardBegins, StepBegins, ZeroGrad
from harness.watch.facts.modes import Modes
from harness.watch.monitor import Monitor

KEPT = 8
"""Forwards that are remembered until an update uses their gradients."""


class TrainingInEvalMode(Check):
    """A model is trained while it is in eval mode, so that dropout is off and batch statistics stand still.

    ## Why is this a bug?
    Without dropout a fine-tuned model overfits sooner, and batch normalisation goes on with the statistics that it had.
    Usually the first epoch is right, and all after the first evaluation are not: `model.eval()` stays in force until
    `model.train()` is called again. `from_pretrained` returns a model in eval mode, too.

    ## What to do
    Call model.train() at the beginning of each epoch.

    ## When it is right
    Models without dropout and batch normalisation, models of which more than half of the parameters are frozen, and
    models of which a part is in train mode are not reported. Nor are backward passes that no update uses, as of an
    attack on the inputs, or a model that never was in train mode and has batch normalisation only: its statistics may
    be meant to stand still.

    ## References
    - https://github.com/ThilinaRajapakse/simpletransformers/issues/941
    - https://github.com/ThilinaRajapakse/simpletransformers/issues/739
    """

    id = "mode::training-in-eval-mode"
    needs = "dropout or normalisation"
    formerly = ("mode::training-in-train-mode",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.modes = monitor.fact(Modes)
        self.in_train_mode: WeakSet[nn.Module] = WeakSet()
        """Models that were trained in train mode."""
        self.in_eval_mode: list[tuple[nn.Module, str | None]] = []
        """Those that the gradients at hand come from and that are in eval mode, and where they were called."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.in_eval_mode:  # gradients that were taken away without a call are not used any more
            self.in_eval_mode = [(model, where) for model, where in self.in_eval_mode if _has_gradients(model)]

    def on_backward(self, event: Backward) -> None:
        for forward in event.forwards:
            if forward.number not in event.reached:
                continue
            self.looked |= bool(self.modes.sensitive(forward.model))
            if forward.model.training:
                self.in_train_mode.add(forward.model)
            elif self._is_at_fault(forward.model):
                self.in_eval_mode = [*self.in_eval_mode[1 - KEPT :], (forward.model, forward.where)]

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
        for model, where in self.in_eval_mode:
            if any(id(p) in held for p in _trainable(model)):
                self.found(
                    expected="model.train() before the updates, and again after each evaluation",
                    observed=f"{type(model).__name__} is in eval mode: none of its {len(self.modes.sensitive(model))} "
                    "dropout or normalisation modules works",
                    where=where,
                    update=event.update,
                )
        self.in_eval_mode = []


def _trainable(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def _has_gradients(model: nn.Module) -> bool:
    return any(p.grad is not None for p in model.parameters())


def _mostly_frozen(model: nn.Module) -> bool:
    """Whether nothing is trained, or so little that somebody may want the model to be in eval mode."""
    parameters = list(model.parameters())
    return sum(not p.requires_grad for p in parameters) > len(parameters) / 2 or not parameters
