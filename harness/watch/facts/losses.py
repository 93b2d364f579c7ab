"""Loss calls: the mean loss of a batch, whatever a script makes of it."""

from __future__ import annotations

from typing import Any

import torch

from harness.watch.events import LossCall

NEAR = 2e-3
"""How near a ratio of losses must be to a whole number's inverse to count as that: rounding is far below, and an added
penalty or another weighting of rows far above."""


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
