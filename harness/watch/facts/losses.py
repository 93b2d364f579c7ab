"""Loss: the value that is differentiated, and the mean loss of a batch, whatever a script makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from harness.watch.check import Fact
from harness.watch.events import BackwardBegins, LossCall

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

NEAR = 2e-3
"""How near a ratio of losses must be to a whole number's inverse to count as that: rounding is far below, and an added
penalty or another weighting of rows far above."""


class DifferentiatedLoss(Fact):
    """What the backward pass at hand differentiates."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.value: float | None = None
        """Without a GradScaler's factor; None where it was not looked at, or belongs to an optimizer's closure."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        looked_at = self.monitor.is_sampled() and not event.inside_step
        self.value = event.root.detach().float().sum().item() / event.scale if looked_at else None


def mean_loss(call: LossCall) -> float | None:
    """The mean loss of the batch, whatever reduction the script chose; None where it cannot be told."""
    if call.function not in ("cross_entropy", "nll_loss") or call.options.get("weight") is not None:
        plain = call.value.dim() == 0 and call.options.get("reduction", "mean") == "mean"
        return float(call.value.detach().float().item()) if plain else None
    options: dict[str, Any] = {
        name: value for name, value in call.options.items() if name in ("ignore_index", "label_smoothing")
    }
    function = getattr(torch.nn.functional, call.function)
    return float(function(call.input.detach().float(), call.target.detach(), reduction="mean", **options))
