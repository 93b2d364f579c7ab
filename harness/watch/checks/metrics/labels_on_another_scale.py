from __future__ import annotations

import math

import torch

from harness.findings import between
from harness.watch.check import Check
from harness.watch.events import LossCall, Scored
from harness.watch.monitor import Monitor

FUNCTIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")

FACTOR = 8
"""Times that labels must be larger, or smaller, in the evaluation than in training. Rows of a test are seldom so far
from those of training, and units that were not undone make more. Neither half nor double of it changes a verdict of the
corpus."""

MIN_ROWS = 8
"""Labels that tell a scale. By reasoning, fewer are somebody's single question."""


class LabelsOnAnotherScale(Check):
    """What the model says is compared with labels of another scale than those that it was trained on.

    ## Why is this a bug?
    A model that was trained on standardised labels, or on their logarithms, answers in those units. Its error against
    labels in the original units answers another question, and is so large or small that it means nothing.

    ## What to do
    Undo the scaling of what the model says: `prediction * std + mean`, with the numbers that the training labels were
    scaled with; or scale the labels of the evaluation alike.

    ## When it is right
    Predictions that were converted back, by a product, a sum or an exponential, are not reported: only the model's own
    output is looked at. Neither are labels whose scale differs by less than a factor of 8, or a model whose answers are
    also on that scale, because it scales by its inputs.

    ## References
    - https://scikit-learn.org/stable/modules/compose.html (transforming the target in regression)
    """

    status = "new"
    needs = "evaluation of a regression"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained: dict[tuple[int, ...], tuple[float, float]] = {}
        """The smallest and the largest scale of a batch's labels, by the shape of one answer."""

    def on_loss(self, event: LossCall) -> None:
        if event.function in FUNCTIONS and self.monitor.is_sampled() and event.target.numel() >= MIN_ROWS:
            scale = _scale(event.target)
            low, high = self.trained.get(_answer(event.target), (math.inf, 0.0))
            self.trained[_answer(event.target)] = min(low, scale), max(high, scale)

    def on_scored(self, event: Scored) -> None:
        parts = event.parts
        if parts is None and event.loss is not None and event.loss.function in FUNCTIONS:
            parts = event.loss.input, event.loss.target
        said = event.forward.logits
        if parts is None or said is None or said.numel() < MIN_ROWS:
            return
        self.looked |= any(_answer(part) in self.trained for part in parts)
        labels = [other for one, other in (parts, parts[::-1]) if _is_as_said(one, said)]
        trained = self.trained.get(_answer(labels[0])) if len(labels) == 1 else None
        if trained is None or labels[0].numel() != said.numel() or trained[1] == 0:
            return
        low, high = trained
        scale = _scale(labels[0])
        outside = scale > FACTOR * high or scale < low / FACTOR
        if outside and low / FACTOR <= _scale(said) <= FACTOR * high:  # what it says is of the scale of training
            self.found(
                expected=f"labels of the scale of training, where their root mean square was {between(low, high)}",
                observed=f"the model's own output is compared with labels whose root mean square is {scale:.3g}: "
                "scaling that was done for the training is not undone",
                where=event.forward.where,
                update=self.monitor.updates_made,
            )


def _answer(labels: torch.Tensor) -> tuple[int, ...]:
    return tuple(size for size in labels.shape[1:] if size > 1)


def _is_as_said(tensor: torch.Tensor, said: torch.Tensor) -> bool:
    """Whether it is the output itself, or a view of it."""
    return tensor.numel() == said.numel() and tensor.data_ptr() == said.data_ptr()


def _scale(labels: torch.Tensor) -> float:
    return float(labels.detach().float().square().mean().sqrt())
