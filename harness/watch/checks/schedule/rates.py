from __future__ import annotations

import math

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.schedule.observations.plateaus import PlateauStepped
from harness.watch.checks.schedule.observations.rates import MOMENTS, RatesByHand, RatesUsed
from harness.watch.facts.scheduler_ledger import NEGLIGIBLE, ScheduleOver
from harness.watch.facts.schedules import MOST_STEPS

IDLE = 6
"""Largest number of them at which it may be negligible: more than a quarter of the training."""

RATE = 0.1
"""Learning rates below which no factor is chosen by chance that is the same. A factor of 0.1 is one."""

AS_GIVEN = 1e-3
"""Largest difference between such a factor and the rate, as a share: a warmup may end between two steps."""


class DecaysTooFast(Check):
    """The learning rate decays so fast that it is negligible for most of the training.

    ## Why is this a bug?
    A factor that was meant for each epoch is applied at each step: 0.9 becomes 0.00003 within a hundred updates. The
    loss stands still, as if the model could learn no more.

    ## What to do
    Step the scheduler once per epoch, or choose a slower decay.

    ## When it is right
    A decay that ends with the training is not reported, nor are warm restarts.
    """

    def judge(self, fact: ScheduleOver) -> Verdict:
        observed = self._observed(fact) if fact.drives else None
        if observed is None:
            return HELD if fact.has_rates else NOTHING_TO_JUDGE
        return Found(
            expected="a learning rate that stays large enough until the end of the training",
            observed=observed,
            where=fact.seen.where,
            update=fact.at.updates_made,
        )

    def judge_by_hand(self, fact: RatesByHand) -> Verdict:
        peak = max(fact.rates)
        if not all(rate <= NEGLIGIBLE * peak for rate in fact.rates[-IDLE - 1 :]):
            return HELD
        idle = sum(rate <= NEGLIGIBLE * peak for rate in fact.rates[fact.rates.index(peak) :]) / MOMENTS
        return Found(
            expected="a learning rate that stays large enough until the end of the training",
            observed=f"for the last {idle:.0%} of the updates, the learning rate is {_below(min(fact.rates))}",
            hint="Check whether the rate is computed in updates or in epochs, and what it is computed from.",
        )

    def _observed(self, fact: ScheduleOver) -> str | None:
        """How long a schedule without an end has come to nothing, where that is too long."""
        seen = fact.seen
        if seen.rate is None or seen.end is not None or seen.planned < 3:
            return None
        if not fact.training.known or fact.training.may_be_left:
            return None
        planned = min(round(seen.planned), MOST_STEPS)
        marks = [fact.rate(round(planned * part / (MOMENTS - 1))) for part in range(MOMENTS)]
        peak = max([*marks, fact.rate(0)])
        idle = sum(rate <= NEGLIGIBLE * peak for rate in marks)
        if peak <= 0 or idle <= IDLE:
            return None
        return f"{seen.name}: for {idle / MOMENTS:.0%} of the updates, the rate is {_below(min(marks))}"


def _below(lowest: float) -> str:
    return f"below {NEGLIGIBLE:.0e} of its peak" if lowest >= 0 else f"negative or 0, down to {lowest:.2g}"


class LrZero(Check):
    """The learning rate is 0 or negative while the training continues.

    ## Why is this a bug?
    An update at a learning rate of 0 leaves the weights unchanged: the batches are computed for nothing. One at a
    negative rate raises the loss. It happens when the rate is computed by integer division (from the second epoch on
    `(epochs - epoch) // epochs` is 0). It also happens when a schedule has ended, or continues after its end.

    ## What to do
    Check the optimizer's lr, the warmup, and the factor that the scheduler multiplies the rate by.

    ## When it is right
    A warmup from 0 is not reported, and neither is a schedule that ends at 0 with the training (or a few updates before
    it, one for each epoch). An optimizer with a learning rate of 0 in only some of its groups, and warm restarts, are
    not reported either.
    """

    def judge(self, fact: RatesUsed) -> Verdict:
        if fact.zero is None:
            return HELD
        return Found(
            expected="a learning rate above 0",
            observed=f"the learning rate is {fact.zero:.3g} for three updates in a row",
            update=fact.update,
        )


class PlateauWrongMode(Check):
    """ReduceLROnPlateau has the wrong mode, so it mistakes improvement for a plateau.

    ## Why is this a bug?
    `ReduceLROnPlateau` lowers the learning rate when its metric has not decreased for some epochs. That is right for a
    loss. An accuracy rises while the model learns, so in the default mode each epoch that improves counts as a bad one.
    The learning rate falls in the middle of the training until it changes nothing.

    ## What to do
    Set the direction in which the metric improves: mode="max" for an accuracy, mode="min" for a loss.

    ## When it is right
    An error rate (1 - accuracy) or a negative loss is another number, and is not reported. Numbers that are neither the
    accuracy nor the loss of the latest evaluation are not judged.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html
    """

    def judge(self, fact: PlateauStepped) -> Verdict:
        if not fact.misjudged:
            return HELD
        what, right = ("accuracy", "max") if fact.mode == "min" else ("loss", "min")
        return Found(
            expected=f'mode="{right}" for the {what} of the evaluation',
            observed=f'mode="{fact.mode}", but the scheduler is given the {what}: {fact.value:.4g}',
            update=fact.at.updates_made,
            hint=f'Create ReduceLROnPlateau with mode="{right}".',
            details={"mode": right},
        )


class RatesForFactors(Check):
    """The function of a `LambdaLR` returns learning rates instead of factors.

    ## Why is this a bug?
    What it returns is multiplied by the optimizer's learning rate: 0.001 becomes 0.000001, and the model hardly moves.

    ## What to do
    Return factors up to 1, which multiply the optimizer's learning rate, or create the optimizer with lr=1.0.

    ## When it is right
    Functions that return rates are right with an optimizer whose learning rate is 1, and are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html
    """

    explains = (
        "schedule::warmup-never-ends",
        "schedule::decays-too-fast",
        "schedule::stepped-in-wrong-unit",
        "schedule::wrong-length",
        "schedule::may-be-too-long",
    )

    def judge(self, fact: ScheduleOver) -> Verdict:
        observed = self._observed(fact) if fact.drives else None
        if observed is None:
            return HELD if fact.has_rates else NOTHING_TO_JUDGE
        return Found(
            expected=f"factors by which {fact.seen.name} multiplies the learning rate {fact.seen.base:.3g}",
            observed=observed,
            update=1,
        )

    def _observed(self, fact: ScheduleOver) -> str | None:
        """The greatest factor of a function, where it is the very rate that it is multiplied with."""
        seen = fact.seen
        if seen.rate is None or seen.base is None or not 0 < seen.base < RATE or not seen.steps:
            return None
        steps = range(min(max(seen.steps, round(seen.planned)), MOST_STEPS) + 1)
        rates = [fact.rate(step) for step in steps]
        factor = max(rates) / seen.base
        still_rises = rates[0] < rates[-1] == max(rates)  # a trial within a warmup, whose peak is not known
        if still_rises or not math.isclose(factor, seen.base, rel_tol=AS_GIVEN):
            return None
        return f"{seen.name} multiplies the rate by at most {factor:.3g}, so it never exceeds {factor * seen.base:.3g}"
