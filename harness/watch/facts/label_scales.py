"""Label scales: those of a regression's training, beside the labels that its answers are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Fact, LossCall, Scored
from harness.watch.facts.targets import REGRESSIONS

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MIN_ROWS = 8
"""Labels that tell a scale. By reasoning, fewer are somebody's single question."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelsCompared(Fact):
    """What a regression said without a graph was compared with something. ``where`` is its forward pass."""

    needs = "evaluation of a regression"
    of_run = True
    said: torch.Tensor
    labels: torch.Tensor | None = None
    """What the model's own output, as it is, was compared with; None for anything else than its output."""
    trained: tuple[float, float] = 0.0, 0.0
    """The smallest and the largest scale of a batch's labels in training."""


class LabelScales(Recogniser):
    makes = (LabelsCompared,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._trained: dict[tuple[int, ...], tuple[float, float]] = {}
        """The smallest and the largest scale of a batch's labels, by the shape of one answer."""

    def on_loss(self, event: LossCall) -> None:
        if event.function in REGRESSIONS and event.at.sampled and event.target.numel() >= MIN_ROWS:
            scale = scale_of(event.target)
            low, high = self._trained.get(_answer(event.target), (math.inf, 0.0))
            self._trained[_answer(event.target)] = min(low, scale), max(high, scale)

    def on_scored(self, event: Scored) -> None:
        parts = event.parts
        if parts is None and event.loss is not None and event.loss.function in REGRESSIONS:
            parts = event.loss.input, event.loss.target
        said = event.forward.logits
        if parts is None or said is None or said.numel() < MIN_ROWS:
            return
        known = [part for part in parts if _answer(part) in self._trained]
        labels = [other for one, other in (parts, parts[::-1]) if _is_as_said(one, said)]
        trained = self._trained.get(_answer(labels[0]), (0.0, 0.0)) if len(labels) == 1 else (0.0, 0.0)
        comparable = trained[1] > 0 and labels[0].numel() == said.numel()
        if known:
            compared = labels[0] if comparable else None
            self.tell(LabelsCompared(said=said, labels=compared, trained=trained, where=event.forward.where))


def scale_of(labels: torch.Tensor) -> float:
    """The root mean square."""
    return float(labels.detach().float().square().mean().sqrt())


def _answer(labels: torch.Tensor) -> tuple[int, ...]:
    return tuple(size for size in labels.shape[1:] if size > 1)


def _is_as_said(tensor: torch.Tensor, said: torch.Tensor) -> bool:
    """Whether it is the output itself, or a view of it."""
    return tensor.numel() == said.numel() and tensor.data_ptr() == said.data_ptr()
