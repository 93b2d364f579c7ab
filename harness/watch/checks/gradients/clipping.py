from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.gradients.observations.unheld_gradients import ClippedWithUnheld
from harness.watch.facts.gradient_ledger import GradientsAdded, GradientsCleared, GradientsClipped, GradientsUsed
from harness.watch.facts.held_tensors import names


class ClippedInPart(Check):
    """Gradients are clipped before all micro-batches of the update have been added up.

    ## Why is this a bug?
    Each call clips only the sum so far: the first micro-batches are scaled down again and again, the last one counts in
    full, and the gradient that the optimizer uses may still exceed the limit.

    ## What to do
    Clip right before optimizer.step(), once for all micro-batches of the update.

    ## When it is right
    Several backward passes of one batch with clipping in between are not reported.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation
    """

    needs = "clipping of gradients"

    def judge(self, fact: GradientsAdded) -> Verdict:
        if not fact.clipped:
            return NOTHING_TO_JUDGE
        if fact.of_one_batch:
            return HELD
        return Found(
            expected="one clipping, after the last micro-batch of the update",
            observed="the script clips after a micro-batch, and then adds the gradients of more micro-batches",
        )

    def judge_clipping(self, fact: GradientsClipped) -> Verdict:
        return HELD


class ClippedWhileScaled(Check):
    """Gradients are clipped while they are still multiplied by the GradScaler's factor.

    ## Why is this a bug?
    Before `scaler.unscale_` gradients are thousands of times too large. Clipping at that point cuts nearly all of them
    to the limit, and then they are divided by the factor: every update has the same length, which is much too small.

    ## What to do
    Call scaler.unscale_(optimizer) once, after the backward pass and before clip_grad_norm_.

    ## When it is right
    Never: a limit for scaled gradients would have to follow the scaler's factor, which changes.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
    """

    def judge(self, fact: GradientsClipped) -> Verdict:
        if not fact.scaled:
            return HELD
        return Found(
            expected="unscaled gradients when clipping",
            observed="the gradients are still multiplied by the GradScaler's factor",
        )


class ClipsNothing(Check):
    """Gradient clipping is given a parameter generator that is already exhausted, so it clips nothing.

    ## Why is this a bug?
    `parameters = model.parameters()` yields its parameters only once. Counting them, or clipping them in the first
    update, leaves nothing for the next call, which then silently clips nothing.

    ## What to do
    Call model.parameters() each time you clip, or keep list(model.parameters()).

    ## When it is right
    Never. Lists, and parameters that have no gradients yet, are different cases.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.parameters
    """

    def judge(self, fact: GradientsClipped) -> Verdict:
        if not fact.used_up:
            return HELD
        return Found(
            expected="the parameters to clip",
            observed="the parameter generator was already exhausted, so nothing was clipped",
        )


class MisplacedClipping(Check):
    """Gradients are clipped before the backward pass, when there are none yet, or after optimizer.step() used them.

    ## Why is this a bug?
    Clipping acts on the gradients as they are when it is called. Before the backward pass there are none, and after the
    step they have been used: a single large gradient changes the weights as if nothing were clipped.

    ## What to do
    Call clip_grad_norm_ after the backward pass and before optimizer.step().

    ## When it is right
    Several backward passes of one batch with clipping in between are not reported. Neither is measuring the norm once
    per window (`clip_grad_norm_` with an infinite limit).

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    needs = "clipping of gradients"

    def judge(self, fact: GradientsUsed) -> Verdict:
        if fact.empty or fact.clipped_without is None or fact.number == 1:
            return NOTHING_TO_JUDGE
        return self._not_in_between(fact.clipped_without, "the script clips when there are no gradients yet")

    def judge_clearing(self, fact: GradientsCleared) -> Verdict:
        if fact.clipped_late is None:
            return NOTHING_TO_JUDGE
        return self._not_in_between(
            fact.clipped_late.where, "the script clips after optimizer.step() used the gradients"
        )

    def judge_clipping(self, fact: GradientsClipped) -> Verdict:
        return HELD

    def _not_in_between(self, where: str | None, observed: str) -> Found:
        return Found("clipping between the backward pass and optimizer.step()", observed, where)


class ClippedWithUnused(Check):
    """Gradients that no optimizer uses and nothing clears are clipped together with the optimizer's.

    ## Why is this a bug?
    The gradients of parameters that no optimizer holds pile up, since `optimizer.zero_grad()` does not know them. Their
    norm grows with each update, and clipping scales the others down by it: every update is smaller than the one before.

    ## What to do
    Give the optimizer model.parameters(), or freeze what you don't want to train with requires_grad_(False).

    Clip the parameters that the optimizer holds.

    ## When it is right
    Clipping what the optimizer holds is right, and so is clipping what `model.zero_grad()` clears in each update.
    """

    needs = "clipping of gradients"

    def judge(self, fact: ClippedWithUnheld) -> Verdict:
        return Found(
            expected="clipping of only the gradients that the optimizer uses",
            observed=f"{names(fact.parameters)} of {fact.model} are in no optimizer, nothing clears their gradients, "
            "and they are clipped together with the others: their growing norm shrinks every update",
            update=1,
        )

    def judge_clipping(self, fact: GradientsClipped) -> Verdict:
        return HELD
