from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.gradients.observations.lost_gradients import GradientsLost
from harness.watch.facts.gradient_ledger import GradientsUsed


class NotCleared(Check):
    """An optimizer step uses gradients that still contain those of an earlier update.

    ## Why is this a bug?
    `backward()` adds to `.grad`. Without `zero_grad()`, update n uses the sum of n batches' gradients: the steps grow
    and keep pointing where the first batches pointed. The loss still falls for a while.

    ## What to do
    Call optimizer.zero_grad() once for each update: after optimizer.step(), or before the first backward pass of the
    next one.

    ## When it is right
    Accumulating micro-batches is not reported: the backward passes since the last optimizer step are one window.
    Neither are the several backward passes of an optimizer that calls its closure more than once (LBFGS).

    ## References
    - https://stackoverflow.com/q/60335387
    """

    needs = "second update with gradients"

    def judge(self, fact: GradientsUsed) -> Verdict:
        by_hand = not fact.fresh  # the script has written them itself
        if fact.empty or ((fact.number == 1 or by_hand) and not fact.stale):
            return NOTHING_TO_JUDGE
        if not fact.stale:
            return HELD
        used = fact.stale[-1].used
        return Found(
            expected=f"only gradients computed since update {used}",
            observed=f"the gradients of update {used} were never cleared"
            + ("" if fact.fresh else ", and there was no backward pass since"),
        )


class Lost(Check):
    """Gradients are cleared before the optimizer has used them.

    ## Why is this a bug?
    The backward pass of those rows is wasted: the model never learns from them. If `zero_grad()` comes between
    `backward()` and `step()`, it learns nothing at all; if the last, unfilled window of accumulated micro-batches gets
    no step, the end of every epoch is thrown away.

    ## What to do
    Clear the gradients after optimizer.step(). If you accumulate micro-batches, also make a step after the last batch
    of an epoch.

    ## When it is right
    A backward pass is not lost if any optimizer used it: the generator's loss also leaves gradients in the
    discriminator, and the actor's in the critic, and these are cleared. The following are not reported: updates that a
    GradScaler skips; gradients whose norm was measured before they were dropped; losses that are differentiated again
    as part of the update's loss (to balance them by their gradients); parameters that were moved between the backward
    pass and the clearing (SAM and other two-pass methods); gradients that the script reads at any time to make others
    from them (PCGrad, A-GEM, Fisher information); and the gradients of an input (adversarial training).

    ## References
    - https://github.com/huggingface/accelerate/issues/616
    """

    needs = "optimizer step after a backward pass"

    def judge(self, fact: GradientsLost) -> Verdict:
        lost, hint = len(fact.entries), None
        if fact.optimizers > 1:
            lines = " and ".join(sorted({entry.where for entry in fact.entries if entry.where}))
            hint = f"Call step() on the optimizer of the loss at {lines} before anything clears the gradients."
        return Found(
            expected="optimizer.step() between the backward pass and the clearing of its gradients",
            observed=f"the gradients of {lost} backward pass{'es' * (lost > 1)} were cleared "
            + ("and no step used them" if fact.partly else "before a step could use them"),
            update=fact.update,
            hint=hint,
        )

    def judge_step(self, fact: GradientsUsed) -> Verdict:
        if not fact.empty or not fact.fresh or fact.used_elsewhere:
            return HELD
        if fact.called:
            return Found(
                expected="gradients at optimizer.step()",
                observed="optimizer.step() comes before the backward pass, so there are no gradients yet",
                where=fact.cleared_at,
                hint="Call optimizer.step() after the backward pass of its batch, and zero_grad() after that.",
                details={"case": "step-before-backward"},
            )
        return Found(
            expected="gradients at optimizer.step()",
            observed="all gradients were cleared between the backward pass and the step",
            where=fact.cleared_at,
            hint="Move zero_grad() after optimizer.step(), or before the backward pass.",
        )
