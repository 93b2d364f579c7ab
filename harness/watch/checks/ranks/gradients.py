from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.facts.losses import UNEVEN
from harness.watch.facts.rank_gradients import GRADIENT_RTOL, GradientsOfRanks

MIN_UPDATES = 2
"""Updates in which it must be so. By reasoning: in one of them it may be a coincidence."""

MIN_OFF = 0.05
"""Share by which a gradient must differ from that of one process. By reasoning: less is within what another
order of the rows makes of it."""


class GradientScaled(Check):
    """With several processes, the gradient is a multiple or a fraction of what one process would compute.

    ## Why is this a bug?
    DistributedDataParallel, Accelerate and Trainer average the gradients of the ranks. If you also divide the loss by
    the number of processes, you train with a fraction of the gradient. If you add the gradients up by hand and do not
    divide, you train with a multiple. The learning rate means something else with each number of processes; with Adam
    it shows only in clipping, in weight decay and in the norms that are logged.

    ## What to do
    Average only once. With DistributedDataParallel, don't divide the loss; by hand, use `ReduceOp.AVG`, or sum and
    divide by the number of processes. If you divide the loss by the number of tokens of all ranks, multiply it by the
    number of processes.

    ## When it is right
    A loss that is added up over the rows and divided by the number of rows (or tokens) of all ranks is not reported.
    Neither is a loss with a weight, even if it is half of the loss on two ranks: a fraction is reported only where the
    reduction makes it, or where the line that scales the loss divides by a number of processes. What each rank
    differentiates is compared with what its optimizer gets, in at least two updates.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/ddp.html
    - https://github.com/huggingface/transformers/issues/47688
    """

    new_since = "0.3.0"

    def judge(self, fact: GradientsOfRanks) -> Verdict:
        if fact.updates < MIN_UPDATES or fact.nearest is None or fact.off >= MIN_OFF:
            return NOTHING_TO_JUDGE
        near = GRADIENT_RTOL if fact.whole is not None else MIN_OFF
        if abs(fact.nearest - 1) <= near:
            return HELD
        by_reduction = fact.reduced is not None and abs(fact.reduced - 1) > GRADIENT_RTOL
        is_fraction = abs(fact.nearest * fact.ranks - 1) <= near
        is_multiple = abs(fact.nearest / fact.ranks - 1) <= near
        fraction_is_known = is_fraction and (by_reduction or fact.divided or fact.of_all)
        multiple_is_known = is_multiple and (by_reduction or fact.by_trainer)
        if not fraction_is_known and not multiple_is_known:
            return NOTHING_TO_JUDGE
        part = "a half" if fact.ranks == 2 else f"1/{fact.ranks}"
        how = f"{part} of that gradient" if is_fraction else f"{fact.ranks} times that gradient"
        return Found(
            expected="the gradient of the mean loss over the rows of all ranks",
            observed=f"{how}, in {fact.updates} updates of {fact.ranks} processes",
            where=(fact.divided if is_fraction and not by_reduction else None) or fact.where,
            hint="Set average_tokens_across_devices=False: Trainer multiplies the loss by the number of processes, for "
            "models that divide by the number of tokens on all ranks, but this model takes the mean."
            if fact.by_trainer and not by_reduction
            else None,
        )


class ClippedBeforeAveraging(Check):
    """Each process clips its own gradients before they are averaged.

    ## Why is this a bug?
    The limit is meant for the gradient of the whole batch. A rank's own gradient is noisier and has a larger norm, so
    it is clipped more often. Ranks that are clipped weigh less in the average than those that are not.

    ## What to do
    Average the gradients first, then clip, then step.

    ## When it is right
    With DistributedDataParallel, Accelerate and Trainer the gradients are averaged in the backward pass; clipping after
    it is not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    new_since = "0.3.0"

    def judge(self, fact: GradientsOfRanks) -> Verdict:
        if fact.clipped_own is None:
            return HELD if fact.clipped and fact.reduced is not None else NOTHING_TO_JUDGE
        return Found(
            expected="clipping after the gradients are averaged over the ranks",
            observed="each rank clips its own gradients, before averaging",
            where=fact.clipped_own,
        )


class TokensWeighUnlike(Check):
    """Tokens or rows of one process or backward pass count more in an update than those of another.

    ## Why is this a bug?
    Each rank takes the mean over its own tokens, and the ranks' gradients are averaged: a rank with few taught tokens
    counts as much as one with many. The training depends on how rows are spread over processes, and gives other results
    with another number of them. So it does where one of several micro-batches is not divided by their number.

    ## What to do
    Sum the losses of the tokens, divide by the number of tokens on all ranks, and multiply by the number of processes,
    because the gradients are averaged. Trainer does this with `average_tokens_across_devices`.

    ## When it is right
    Ignore it if you want each rank, or each sequence, to count equally. It is reported only if the weights of tokens
    differ by a quarter or more, and the gradients by a twentieth.

    ## References
    - https://huggingface.co/blog/gradient_accumulation
    """

    severity = "warning"
    new_since = "0.3.0"

    def judge(self, fact: GradientsOfRanks) -> Verdict:
        averaged = fact.reduced is not None and fact.updates >= MIN_UPDATES
        if not averaged or max(fact.uneven, fact.unequal) < UNEVEN:
            return NOTHING_TO_JUDGE
        if fact.uneven < UNEVEN or fact.off < MIN_OFF:
            return HELD
        return Found(
            expected="the gradient of the mean loss over all tokens of all ranks",
            observed=f"the gradient is off by {fact.off:.0%}: a token of one backward pass counts up to "
            f"{fact.uneven:.1f} times as much as a token of another, in {fact.updates} updates of {fact.ranks} "
            "processes",
        )
