from __future__ import annotations

import math

import torch

from harness.torch_objects import shapes_before
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import LossCall
from harness.watch.facts.loss_inputs import DifferenceInPairs, DifferenceOfRows, LossesWeighted


class AxesMixed(Check):
    """`view` or `reshape` gives the logits the shape that cross_entropy expects, but mixes up positions and classes.

    ## Why is this a bug?
    For a label at each place, `cross_entropy` takes logits of shape (rows, classes, places). `view` and `reshape` keep
    the numbers in the order in which they lie in memory: what becomes one class's logit at one place was another
    class's logit at another. Each label is compared with logits of several places, and the loss still falls a little.

    ## What to do
    Move the class axis: logits.transpose(1, 2), or logits.movedim(-1, 1) if there are several position axes. Or flatten
    both: cross_entropy(logits.flatten(0, -2), labels.flatten()).

    ## When it is right
    A layer that gives all numbers of a row at once has no axes to mix: its output may be viewed in any shape and is not
    reported. Neither is the output of anything but a linear layer, since it is not known whether its classes come last.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
    """

    needs = "cross_entropy with a label for each place"
    in_windows = "first"

    def judge(self, call: LossCall) -> Verdict:
        if call.function != "cross_entropy" or call.input.dim() < 3 or not call.at.sampled:
            return NOTHING_TO_JUDGE
        shapes = shapes_before(call.input)
        if len(shapes) < 2 or len(shapes[0]) < 3:
            return HELD  # what gave the logits is not known: a linear layer views rows with places as one list of rows
        before, *earlier = shapes
        rows, *places, classes = before
        if call.input.shape != (rows, classes, *places) or before == call.input.shape:
            return HELD
        if min(classes, math.prod(places)) <= 1 or not all(shape[-1:] == (classes,) for shape in earlier):
            return HELD
        return Found(
            expected=f"logits whose class axis is moved, as by movedim(-1, 1), to get {tuple(call.input.shape)}",
            observed=f"logits of shape {tuple(before)} are viewed as {tuple(call.input.shape)}, which mixes up "
            "positions and classes",
        )


class FlattenedApart(Check):
    """Logits and labels are flattened in different orders: one batch-first, the other sequence-first.

    ## Why is this a bug?
    `reshape(-1)` reads the numbers in the order in which they lie in memory. A recurrent network without `batch_first`
    returns logits of shape (places, rows, classes). If labels have shape (rows, places), both become lists of the same
    length, in which every label is paired with the logits of another place. The loss falls until the network has learnt
    how frequent each label is.

    ## What to do
    Put both in the same order before you flatten them: logits.transpose(0, 1).reshape(-1, classes).

    ## When it is right
    Never. If there are as many rows as places, the shapes do not show the order, and nothing is reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    """

    since = "0.3.0"
    needs = "loss of flattened logits and labels"
    in_windows = "first"

    def judge(self, call: LossCall) -> Verdict:
        if call.function != "cross_entropy" or call.input.dim() != 2 or call.target.dim() != 1:
            return NOTHING_TO_JUDGE
        labels = _flattened(call.target)
        shapes = shapes_before(call.input) if labels is not None and call.at.sampled else []
        if labels is None or not shapes or len(shapes[0]) != 3:
            return NOTHING_TO_JUDGE
        first, second, _ = shapes[0]
        if labels != (second, first) or first == second or min(labels) <= 1:
            return HELD
        return Found(
            expected=f"logits and labels in the same order before they are flattened, such as {tuple(labels)}",
            observed=f"logits {tuple(shapes[0])} and labels {tuple(labels)} are flattened as they are",
        )


class Broadcast(Check):
    """Predictions and targets have different shapes, so the loss compares each prediction with every target.

    Or the losses of rows and their weights do: then every loss counts with the weights of all rows.

    ## Why is this a bug?
    Predictions of shape (16, 1) and targets of shape (16,) are broadcast to (16, 16): all rows share the mean of all
    targets, and the model learns to predict that mean for everything. torch warns once and continues; if the script
    takes the difference by hand, nothing warns.

    ## What to do
    Give both the same shape, with squeeze(-1) or unsqueeze(-1).

    ## When it is right
    One target for all rows is not reported. Neither are shapes that were made for pairs, such as (16, 1) and (1, 16),
    or a loss that also compares outputs with each other. `cross_entropy` and `nll_loss`, whose targets have one
    dimension fewer, are not reported either.

    ## References
    - https://github.com/pytorch/pytorch/issues/4938
    """

    needs = "loss whose target has the prediction's shape"
    in_windows = "all"
    explains = ("metrics::broadcast",)  # of a loss by hand that an evaluation computes too

    def judge(self, call: LossCall) -> Verdict:
        if not call.at.sampled or call.of_classes:
            return NOTHING_TO_JUDGE
        given, target = call.input.shape, call.target.shape
        if len(given) == len(target) or call.reduction == "none":
            return HELD  # made for pairs
        wider = torch.broadcast_shapes(given, target)  # type: ignore[no-untyped-call]
        if wider.numel() <= max(given.numel(), target.numel()):
            return HELD
        return self._in_pairs(given, target, call.function)

    def judge_by_hand(self, fact: DifferenceInPairs) -> Verdict:
        return self._in_pairs(fact.outputs, fact.targets, "the subtraction")

    def judge_weights(self, fact: LossesWeighted) -> Verdict:
        return Found(
            expected=f"weights of the same shape as the losses, {tuple(fact.losses)}",
            observed=f"weights of shape {tuple(fact.weights)}, which the product broadcasts: the loss of each row is "
            "multiplied by the weights of all rows",
            hint="Give both the same shape, with squeeze(-1) or unsqueeze(-1).",
            may_be_meant=True,  # new since 0.4.0
        )

    def judge_by_row(self, fact: DifferenceOfRows) -> Verdict:
        return HELD

    def _in_pairs(self, given: torch.Size, target: torch.Size, operation: str) -> Found:
        return Found(
            expected=f"targets of the same shape as the predictions, {tuple(given)}",
            observed=f"targets of shape {tuple(target)}, which {operation} broadcasts: each row is compared with every "
            "target",
        )


def _flattened(labels: torch.Tensor) -> torch.Size | None:
    """The shape that labels had before they were flattened, where all of them were and none moved."""
    before = labels._base
    if before is None or before.dim() != 2 or before.numel() != labels.numel() or not before.is_contiguous():
        return None
    return before.shape
