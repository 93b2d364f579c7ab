from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.gradients.observations.micro_batches import (
    COUNT,
    FirstWindowOfPass,
    MicroBatchesUsed,
    SameRowsAdded,
    UncountedLossUsed,
)
from harness.watch.facts.accelerators import AcceleratorAccumulates
from harness.watch.facts.losses import LOSS_RATIO_RTOL, UNEVEN

MIN_BACKWARD_PASSES = 8
"""Backward passes that must have been seen. By reasoning: two windows of the usual four."""


class SameRowsAccumulated(Check):
    """An update adds up the gradients of the same rows several times, where micro-batches of other rows are meant.

    ## Why is this a bug?
    Accumulation makes a large batch out of several small ones. A loop around the forward and backward pass of one batch
    costs as much and adds nothing: the gradient is that of the small batch, times the number of rounds if it is not
    divided, and an epoch has as many updates as without accumulation.

    ## What to do
    Take the next batch for each backward pass, and make an update after every N of them. With Accelerate,
    `accumulate()` counts the batches itself: put it into the loop over the DataLoader, without an extra loop.

    ## When it is right
    Ignore this warning if the model draws random numbers that are to be averaged over, as some generative models do.
    Several losses of the same rows, each with a backward pass on its own line, are not reported. Neither is a loop over
    models.
    """

    severity = "warning"
    new_since = "0.4.0"

    def judge(self, fact: SameRowsAdded) -> Verdict:
        if fact.times * fact.updates < MIN_BACKWARD_PASSES:
            return NOTHING_TO_JUDGE
        return Found(
            expected="a backward pass for each of several batches, between two updates",
            observed=f"{fact.times} backward passes with the same rows in each of {fact.updates} updates",
        )

    def judge_others(self, fact: MicroBatchesUsed) -> Verdict:
        return HELD


class MicroBatchesWeighUnlike(Check):
    """Targets of one micro-batch count more in an update than those of another, because each micro-batch has its own
    mean.

    ## Why is this a bug?
    A micro-batch of 200 tokens and one of 1,000 have the same share of the update, so each token of the first counts
    five times as much. The training differs from that with one large batch of the same rows, and depends on which rows
    come together.

    ## What to do
    Sum the loss over the targets, and divide it by the number of targets in all micro-batches of the update.

    Count them before the first backward pass: take the batches of an update first, add up their labels that are not
    ignored, then divide each sum by that number.

    ## When it is right
    Ignore this warning if each row, or each micro-batch, is meant to count equally. It is given only if one micro-batch
    has a quarter more targets than another with as many rows, and only for torch losses that the script calls.

    ## References
    - https://huggingface.co/blog/gradient_accumulation
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "accumulated losses whose targets are counted"
    in_windows = "none"

    def judge(self, fact: MicroBatchesUsed) -> Verdict:
        if not fact.targets or min(fact.targets) < 1 or max(fact.targets) < UNEVEN * min(fact.targets):
            return NOTHING_TO_JUDGE
        weights = [share / targets for share, targets in zip(fact.shares, fact.targets, strict=True)]
        if min(weights) <= 0 or max(weights) < UNEVEN * min(weights):
            return HELD
        return Found(
            expected="the mean over the targets of all micro-batches of the update",
            observed=f"micro-batches of {min(fact.targets)} to {max(fact.targets)} targets, of which one target counts "
            f"up to {max(weights) / min(weights):.2g} times as much as another",
        )


class AccumulationUnscaled(Check):
    """The losses of accumulated micro-batches are not divided by the number of micro-batches of the update.

    ## Why is this a bug?
    Gradients add up. Four micro-batches whose losses are not divided by four give gradients four times as large as one
    batch of the same rows would: the effective learning rate is not the one that was set, and clipping cuts more.

    ## What to do
    Divide each micro-batch's loss by the number of micro-batches of its window before its backward pass (Accelerate:
    gradient_accumulation_steps and accelerator.backward do it). Since transformers 4.46, Trainer leaves that to the
    loss: `compute_loss` and `compute_loss_func` get `num_items_in_batch`, the number of targets of the window, and
    divide a sum by it. One that returns a mean and never reads it trains with gradients that are too large by the
    number of micro-batches.

    ## When it is right
    Losses that are summed over rows or tokens and divided once for the whole window are not reported, even if you
    divide by hand after the last backward pass. Neither is a window that the end of an epoch cuts short. Several losses
    of one update, each with its own backward pass, are not micro-batches: they are meant to be added. Examples are real
    and fake rows, the heads of a model, its tasks, and graphs or episodes of different sizes.

    ## References
    - https://github.com/huggingface/transformers/issues/47688
    - https://github.com/huggingface/transformers/issues/43651
    - https://github.com/huggingface/transformers/pull/34198
    """

    def judge(self, fact: MicroBatchesUsed) -> Verdict:
        shares, size = fact.shares, len(fact.shares)
        first = shares[0]
        if first <= 0:
            return HELD  # a loss of another sign is another check's
        total = sum(shares) / fact.divided_by_hand
        alike = all(abs(share - first) <= LOSS_RATIO_RTOL * abs(first) for share in shares)
        whole = 1 / first
        mixed = all(min(abs(share - 1), abs(share * size - 1)) <= LOSS_RATIO_RTOL for share in shares)
        if (
            (not alike and not mixed)
            or abs(whole - round(whole)) > LOSS_RATIO_RTOL * abs(whole)
            or abs(total - 1) <= 2 * LOSS_RATIO_RTOL
        ):
            return HELD
        divided = f"each loss is divided by {round(whole)}" if round(whole) > 1 else "no loss is divided"
        how = divided if alike else "some losses are divided, others are not"
        return Found(
            expected=f"losses divided by {size}, because each update adds up {size} micro-batches",
            observed=f"{how}, so the gradients are {total:.4g} times those of the mean loss",
            hint=f"Divide each micro-batch's loss by {size} only once, by hand or by accelerator.backward, which "
            "does it where gradient_accumulation_steps is given."
            if round(whole) == size * size
            else f"Divide each micro-batch's loss by {size} before its backward pass"
            " (Accelerate: gradient_accumulation_steps and accelerator.backward do it).",
        )

    def judge_trainers(self, fact: UncountedLossUsed) -> Verdict:
        if not fact.undivided:
            return HELD
        return Found(
            expected=f"losses divided by the number of targets in the {fact.micro_batches} micro-batches of an update",
            observed=f"`{fact.function}` returns a mean and never reads `{COUNT}`, and Trainer does not divide its "
            f"result: the gradients are {fact.micro_batches} times as large as those of one batch",
            hint=f"Sum the loss over the targets and divide it by `{COUNT}` where that is not None, or set "
            "`loss_is_scaled_for_ga = False` if your version of Trainer has it.",
        )


class AccumulationNotEntered(Check):
    """Accelerate was told to accumulate gradients, and the loop never enters `accelerator.accumulate`.

    ## Why is this a bug?
    `Accelerator(gradient_accumulation_steps=4)` divides each loss by four in `accelerator.backward`.
    `with accelerator.accumulate(model)` decides which steps wait for the others. Without it the optimizer steps at each
    micro-batch, on a quarter of its loss: four times as many updates, each on a quarter of the rows.

    ## What to do
    Put the body of the loop into `with accelerator.accumulate(model):`.

    ## When it is right
    A loop that counts the micro-batches itself and steps at every fourth one is not reported.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation
    """

    new_since = "0.2.0"

    def judge(self, fact: AcceleratorAccumulates) -> Verdict:
        if fact.entered or not MIN_BACKWARD_PASSES <= fact.passes <= fact.steps:
            return HELD
        return Found(
            expected=f"one update for {fact.micro_batches} backward passes, within accelerator.accumulate",
            observed=f"the loop never enters accelerator.accumulate: {fact.steps} updates in {fact.passes} backward "
            f"passes, each with 1/{fact.micro_batches} of its loss",
        )


class LeftOver(Check):
    """The last micro-batches of an epoch get no update of their own and are added to the first update of the next.

    ## Why is this a bug?
    If the script counts the batches from 0 again in each epoch, the last of them may not fill a window. Their gradients
    stay, and the next epoch's first update contains more micro-batches than each loss was divided by, or different
    ones. After the last epoch they are never used.

    ## What to do
    Also make a step after the last batch of an epoch: if (i + 1) % n == 0 or i + 1 == len(loader).

    ## When it is right
    Windows may continue across the end of an epoch, because updates are counted over the whole training. These have the
    same size everywhere and are not reported. Neither are windows whose sizes differ within an epoch (the same number
    of tokens in each).

    ## References
    - https://github.com/huggingface/accelerate/issues/1847
    """

    def judge(self, fact: FirstWindowOfPass) -> Verdict:
        if fact.usual is None or not fact.left_over or fact.size == fact.usual:
            return HELD
        return Found(
            expected=f"{fact.usual} micro-batches in each update",
            observed=f"an update with {fact.size} micro-batches: {fact.left_over} left over from the previous epoch, "
            f"and {fact.size - fact.left_over} from this one",
        )
