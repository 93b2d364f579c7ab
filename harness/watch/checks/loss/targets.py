from __future__ import annotations

from typing import Any

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import AlignmentLoss, LossCall, SignedLoss
from harness.watch.facts.loss_inputs import RegressionTargets, TargetsIgnored
from harness.watch.host import on_host

FUNCTIONS = ("binary_cross_entropy", "binary_cross_entropy_with_logits")

MIN_UPDATES = 3
"""Updates in which it must be so."""

MIN_BATCHES = 6
"""Batches whose targets must all be one number: by reasoning, more than a sorted dataset begins with where it is
shuffled, as it must be here."""

MIN_ROWS = 32
"""Targets that must have been seen."""


class TargetsNotProbabilities(Check):
    """Binary cross-entropy is given targets other than 0 and 1, so the loss has no lower bound.

    ## Why is this a bug?
    The loss expects the probability of the second class. With a target of 2, or of -1, it falls without end as the
    logits grow: it becomes negative, and every row is pushed to the same side.

    ## What to do
    Convert the targets to 0 and 1: labels - 1 for classes 1 and 2, (labels + 1) / 2 for -1 and 1.

    For more than two classes, use `cross_entropy`.

    ## When it is right
    Targets that are not whole numbers, such as smoothed labels, are not reported. Neither are losses that are masked or
    weighted row by row, since a number may then stand for a missing label.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    needs = "binary cross-entropy"
    in_windows = "first"
    explains = ("update::ascends",)

    def judge(self, call: LossCall) -> Verdict:
        if call.function not in FUNCTIONS or not call.at.sampled or not call.target.numel():
            return NOTHING_TO_JUDGE
        if call.reduction == "none" or call.is_weighted:
            return NOTHING_TO_JUDGE
        target = on_host(call.target).float()
        if not bool((target == target.round()).all()) or not bool(((target < 0) | (target > 1)).any()):
            return HELD
        return Found(
            expected="targets of 0 and 1",
            observed=f"{call.function} is given targets from {float(target.min()):g} to {float(target.max()):g}",
        )


class TargetsNotSigns(Check):
    """A loss that expects targets of 1 and -1 is given 0 and 1.

    ## Why is this a bug?
    `margin_ranking_loss` multiplies the difference of two scores by the target: with 0 the pair adds the margin and has
    no gradient. `soft_margin_loss` gives log 2 for each of these rows, `cosine_embedding_loss` takes only 1 and -1, and
    `hinge_embedding_loss` adds both of its branches for any other target.

    ## What to do
    Pass `2 * labels - 1` as the targets.

    ## When it is right
    Targets that include a -1 are not reported, nor are targets that are all 1.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MarginRankingLoss.html
    """

    new_since = "0.3.0"
    needs = "loss of signed targets"
    in_windows = "first"

    def judge(self, call: SignedLoss) -> Verdict:
        if not call.at.sampled or not call.target.numel():
            return NOTHING_TO_JUDGE
        target = on_host(call.target)
        zeros = int((target == 0).sum())
        if not zeros or not bool(((target == 0) | (target == 1)).all()):
            return HELD
        return Found(
            expected="targets of 1 and -1",
            observed=f"{zeros} of the {target.numel()} targets given to {call.function} are 0, and none is -1",
        )


class BlankTaught(Check):
    """`ctc_loss` is given targets that contain its blank, the number that stands for no symbol.

    ## Why is this a bug?
    CTC puts its blank between symbols itself, and drops it from what it reads. Where a symbol has the blank's number,
    or padding is counted as a target, the model is taught to say nothing in its place, and a decoder never writes it.
    torch checks nothing.

    ## What to do
    Give `nn.CTCLoss(blank=...)` the index that the decoder drops, and number the symbols around it. If the blank's
    number is also that of the padding, count only real symbols in `target_lengths`.

    ## When it is right
    Never. Numbers beyond the target lengths are padding and are not checked.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html
    """

    new_since = "0.4.0"
    needs = "loss of CTC"

    def judge(self, call: AlignmentLoss) -> Verdict:
        if not call.at.sampled:
            return NOTHING_TO_JUDGE
        targets, lengths = on_host(call.targets), _numbers(call.lengths)
        if targets.dim() == 2 and len(targets) == len(lengths):
            places = torch.arange(targets.shape[1], device=targets.device)
            targets = targets[places < lengths.to(targets.device)[:, None]]
        taught = int((targets == call.blank).sum())
        if not taught:
            return HELD
        return Found(
            expected=f"targets other than the blank, {call.blank}",
            observed=f"{taught} of the {targets.numel()} targets are {call.blank}",
        )


class TooShortForTargets(Check):
    """`ctc_loss` is told that most rows have fewer places than targets, so nothing is learned from them.

    ## Why is this a bug?
    Each target needs its own place, and two equal ones need a blank between them. For a row with fewer places no
    alignment exists: its loss is infinite, and `zero_infinity=True` makes it 0, without a gradient and without a word.
    The mean looks small, and the model learns from the shortest targets alone.

    ## What to do
    Compute `input_lengths` from the model's output: count what strides and pooling leave, as the output's own length
    says.

    ## When it is right
    Some rows that are too short are not reported, only more than half of a batch.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html
    """

    new_since = "0.4.0"
    needs = "loss of CTC"

    def judge(self, call: AlignmentLoss) -> Verdict:
        if not call.at.sampled:
            return NOTHING_TO_JUDGE
        targets, places = _numbers(call.lengths), _numbers(call.places)
        short = int((places < targets + _equal_neighbours(call, targets)).sum())
        if 2 * short <= len(targets):
            return HELD
        return Found(
            expected="at least as many places as targets in each row",
            observed=f"{short} of {len(targets)} rows have fewer: input_lengths of up to {int(places.max())} for up to "
            f"{int(targets.max())} targets",
        )


def _numbers(lengths: Any) -> torch.Tensor:
    """Lengths on the host, whether they are a tensor, a tuple or one for all rows."""
    if torch.is_tensor(lengths):
        return lengths.detach().cpu().reshape(-1)
    return torch.tensor(lengths, device="cpu").reshape(-1)


def _equal_neighbours(call: AlignmentLoss, lengths: torch.Tensor) -> torch.Tensor:
    """Number of targets of each row that are the same as the one before: a blank must stand between."""
    targets = on_host(call.targets).cpu()
    if targets.dim() != 2 or len(targets) != len(lengths):
        return torch.zeros_like(lengths)
    second = torch.arange(1, targets.shape[1], device="cpu") < lengths[:, None]
    return ((targets[:, 1:] == targets[:, :-1]) & second).sum(1)


class SmoothedTwice(Check):
    """Labels that are smoothed already are smoothed once more by `label_smoothing`.

    ## Why is this a bug?
    Both take a share of the probability from the right class and give it to the others. Together they take nearly twice
    as much: the model is taught to be less sure than the script says, and the loss can no longer fall as far.

    ## What to do
    Smooth once: give `cross_entropy` the numbers of the classes and `label_smoothing`, or probabilities alone.

    ## When it is right
    Probabilities of another kind (a teacher's, or labels of several annotators) are not reported: there the wrong
    classes are not all as likely as each other.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    new_since = "0.4.0"
    needs = "label_smoothing with probabilities as targets"

    def judge(self, call: LossCall) -> Verdict:
        smoothing = call.options.get("label_smoothing", 0.0)
        if call.function != "cross_entropy" or not smoothing or not call.target.is_floating_point():
            return NOTHING_TO_JUDGE
        if not call.at.sampled or call.target.dim() != 2 or call.target.shape[1] <= 3:
            return NOTHING_TO_JUDGE  # of three classes, the two wrong ones are alike more easily
        targets = on_host(call.target).float()
        lowest = targets.min(1, keepdim=True).values
        alike = torch.isclose(targets, lowest).sum(1) > targets.shape[1] / 2
        if not bool((lowest > 0).all()) or not bool(alike.all()):
            return HELD
        return Found(
            expected="labels that are smoothed once",
            observed=f"targets that give every wrong class {float(lowest.mean()):.3g}, and label_smoothing="
            f"{smoothing:g}",
        )


class ClassIgnored(Check):
    """`ignore_index` is the number of a real class, so the loss never teaches that class.

    ## Why is this a bug?
    `ignore_index` leaves every target with that number out of the loss. Suppose the padding of the labels has the
    number of a class, such as 0 for both the padding and the tag of most tokens. Then that class is never taught, and
    the model never predicts it.

    ## What to do
    Pad labels with -100, which is not a class, and leave `ignore_index` at its default.

    ## When it is right
    Targets that are ignored only at the ends of rows are padding and not reported. Neither are ignored targets that are
    fewer than half of the rest, such as the second parts of words, or marks between sentences. Models whose classes are
    their own vocabulary are not reported either: a masked language model is right to ignore the tokens that it sees.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    new_since = "0.3.0"

    def judge(self, fact: TargetsIgnored) -> Verdict:
        if fact.times != MIN_UPDATES:
            return HELD if fact.ignored else NOTHING_TO_JUDGE
        return Found(
            expected=f"an ignore_index that is none of the {fact.classes} classes, or only marks padding at the ends "
            "of rows",
            observed=f"ignore_index={fact.index} leaves {fact.ignored} of {fact.targets} targets out of the loss, "
            f"{fact.between} of them in the middle of a row",
        )


class TargetsTruncated(Check):
    """The targets of a regression are integers and all equal, so there is nothing to learn.

    ## Why is this a bug?
    A cast to an integer cuts off everything after the decimal point: targets between 0 and 1 all become 0. The loss
    falls quickly, because the model only has to predict that number for everything.

    ## What to do
    Keep the targets as floats: use .float() instead of .long(), and no int() or integer column on the way.

    ## When it is right
    Targets that are floats are not reported, however similar they are. Neither are targets that differ in a single row,
    a loss in addition to another one, or targets that the script makes itself.
    """

    def judge(self, fact: RegressionTargets) -> Verdict:
        if fact.batches < MIN_BATCHES or fact.rows < MIN_ROWS:
            return HELD
        return Found(
            expected="targets that differ from row to row",
            observed=f"{fact.function} is given the target {fact.value:g} for each of {fact.rows} rows, and the "
            "batches hold it as an integer",
        )
