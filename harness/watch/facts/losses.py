"""Loss: the value that is differentiated, and the mean loss of a batch, whatever a script makes of it."""

from __future__ import annotations

from typing import Any

import torch

from harness.watch.events import BackwardBegins, Fact, LossCall
from harness.watch.host import on_host, together
from harness.watch.recogniser import Recogniser

UNEVEN = 1.25
"""How many times more a target must weigh than another, or a batch have as many. By reasoning: a last batch that is a
little smaller is usual."""

LOSS_RATIO_RTOL = 2e-3
"""How near a ratio of losses must be to a whole number's inverse to count as that: rounding is far below, and an added
penalty or another weighting of rows far above."""


MOST_OPERATIONS = 16
"""Operations between what a loss function gave and what is differentiated: by reasoning, more are no mean any more."""

KEEP_WEIGHTS = (
    "Sum",
    "Mean",
    "Div",
    "View",
    "UnsafeView",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "ToCopy",
    "Index",
    "Masked",
)
"""Operations that leave losses, or what is left of them, with one weight each."""


class LossDifferentiated(Fact):
    """A backward pass begins whose loss is looked at, and that belongs to no optimizer's closure."""

    needs = "backward pass of a loss"
    in_windows = "all"
    value: float
    """Without a GradScaler's factor."""
    scale: float = 1.0
    """GradScaler's factor."""


class DifferentiatedLoss(Recogniser):
    """What the backward pass at hand differentiates."""

    makes = (LossDifferentiated,)

    def begin(self) -> None:
        self.value: float | None = None
        """Without a GradScaler's factor; None where it was not looked at, or belongs to an optimizer's closure."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        looked_at = self.monitor.is_sampled() and not event.inside_step
        self.value = float(on_host(event.root).float().sum()) / event.scale if looked_at else None
        if self.value is not None:
            self.tell(LossDifferentiated(value=self.value, scale=event.scale, where=event.where))


def targets_in(call: LossCall) -> int:
    """How many targets count, asked of their copy on the host."""
    return call.target.numel() if call.ignored is None else int((on_host(call.target) != call.ignored).sum())


def mean_loss(call: LossCall) -> float | None:
    """The mean loss of the batch, whatever reduction the script chose; None where it cannot be told."""
    if not call.of_classes or call.is_weighted:
        return float(on_host(call.value).float()) if call.is_mean else None
    options: dict[str, Any] = {
        name: value for name, value in call.options.items() if name in ("ignore_index", "label_smoothing")
    }
    function = getattr(torch.nn.functional, call.function)
    given, target = together(call.input, call.target)
    return float(function(given.float(), target, reduction="mean", **options))


def is_weighted(root: torch.Tensor, call: LossCall) -> bool:
    """Whether a script weighs the losses that a call gave one by one, as far as their way to the root can be followed.

    A mask of zeros and ones is no weighting. Asked before the backward pass, which frees the graph.
    """
    node, goal = root.grad_fn, call.value.grad_fn
    if call.value.dim() == 0 or goal is None:
        return False
    for _ in range(MOST_OPERATIONS):
        if node is None or node is goal:
            return False
        name = type(node).__name__
        if name.startswith("Mul"):
            factors = [f for f in (getattr(node, f"_saved_{n}", None) for n in ("self", "other")) if f is not None]
            if any(f.numel() > 1 and not f.requires_grad and not bool(((f == 0) | (f == 1)).all()) for f in factors):
                return True
        elif not name.startswith(KEEP_WEIGHTS):
            return False
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return False
