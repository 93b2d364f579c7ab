from __future__ import annotations

from torch import nn

from harness.watch.check import Check
from harness.watch.events import Backward
from harness.watch.facts.modes import Modes
from harness.watch.monitor import Monitor


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
    models of which a part is in train mode are not reported.

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

    def on_backward(self, event: Backward) -> None:
        for forward in event.forwards:
            if forward.number not in event.reached:
                continue
            sensitive = self.modes.sensitive(forward.model)
            self.looked |= bool(sensitive)
            if forward.model.training:
                continue
            if not sensitive or any(module.training for module in sensitive) or _mostly_frozen(forward.model):
                continue
            self.found(
                expected="model.train() before the updates, and again after each evaluation",
                observed=f"{type(forward.model).__name__} is in eval mode: none of its {len(sensitive)} dropout or "
                "normalisation modules works",
                where=forward.where,
                update=self.monitor.update,
            )


def _mostly_frozen(model: nn.Module) -> bool:
    """Whether nothing is trained, or so little that somebody may want the model to be in eval mode."""
    parameters = list(model.parameters())
    return sum(not p.requires_grad for p in parameters) > len(parameters) / 2 or not parameters
