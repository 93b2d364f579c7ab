from __future__ import annotations

import itertools
import math

from harness.watch.check import HELD, Check, Found, NothingToJudge, Verdict
from harness.watch.checks.schedule.observations.rates import RatesByHand
from harness.watch.events import NotKnown
from harness.watch.facts.scheduler_ledger import FEWEST_STEPS, NEGLIGIBLE, NOT_AHEAD, TOO_SHORT, ScheduleOver

MAKES_A_DIFFERENCE = 0.05
"""Smallest share of its peak at which a learning rate that stops there shows that the schedule went on."""

MOMENTS = 11
"""Moments of the training, evenly over it, at each of which the learning rate must be higher than before."""

LATER = (1.5, 2, 4, 8, 16, 64, 256, 1024)
"""Times the training at which a schedule whose warmup it did not finish is at its peak, or past it, at the latest."""

RISES = 4
"""Times the first learning rate that the last one must be to be that of a warmup. By reasoning: one begins near 0."""

NEVER = 0.5
"""Largest share of the rate that the optimizer was made with, at which a warmup was not over when the training was."""

LONGEST_WARMUP = 40_000
"""Steps after which a warmup is over at the latest, or after 16 times the training. By reasoning: none takes more."""


class MayBeTooLong(Check):
    """The training stops before the schedule is over, while the learning rate is still high.

    ## Why is this a bug?
    The last updates of a schedule use small learning rates, and much of the improvement comes from them. A training run
    that stops halfway keeps the weights of the noisy part, unless it was meant to stop there.

    ## What to do
    Make the schedule for epochs * updates per epoch steps. Ignore this if early stopping may end the training.

    ## When it is right
    If an evaluation ends the training early (early stopping), the schedule has to be made for the most epochs that it
    may take: you can then ignore this warning. A schedule that has come down to a twentieth of its peak is not
    reported. Without an evaluation between the epochs, this is an error, `schedule::wrong-length`.
    """

    severity = "warning"
    explains = ("schedule::lr-zero",)

    def judge(self, fact: ScheduleOver) -> Verdict:
        training = fact.training
        may_end = training.evaluated_between and not training.restored and not fact.counts_other_units()
        stops = fact.drives and fact.end is not None and may_end and fact.outlasts_the_training()
        if not stops or not fact.stops_at() > MAKES_A_DIFFERENCE:  # it is NaN where the rates are not known
            return _length_held(fact)
        return Found(
            expected=f"a schedule of {fact.seen.planned:.0f} steps",
            observed=fact.stops_early,
            update=fact.at.updates_made,
        )


class WarmupNeverEnds(Check):
    """The training ends before the warmup, so the learning rate never reaches its peak.

    ## Why is this a bug?
    The learning rate that was chosen is the peak of the schedule. If the warmup is longer than the training, the rate
    rises from 0 to only a part of it and the decay never comes. Two arguments in the wrong order are enough:
    `get_linear_schedule_with_warmup(optimizer, total, warmup)`.

    ## What to do
    Set the warmup to a small part of all updates, in steps.

    ## When it is right
    A run of a few steps, cyclic schedules, and a run that resumes or is interrupted are not reported. Neither is a rate
    that rises without a peak, or before another optimizer takes over, as in a learning rate range test. Ignore the
    finding in a trial on a small part of the data, whose warmup is that of the whole.
    """

    explains = (
        "schedule::lr-zero",
        "schedule::decays-too-fast",
        "schedule::stepped-in-wrong-unit",
        "schedule::wrong-length",
        "schedule::may-be-too-long",
    )

    def judge(self, fact: ScheduleOver) -> Verdict:
        seen, unseen = fact.seen, NothingToJudge("no schedule of eight steps or more that can be computed ahead")
        if not fact.drives or seen.rate is None or seen.name == "CyclicLR" or seen.planned < FEWEST_STEPS:
            return unseen
        if not fact.training.known or fact.training.restored:
            return unseen
        planned = round(seen.planned)
        marks = [fact.rate(round((planned - 1) * part / (MOMENTS - 1))) for part in range(MOMENTS)]
        if not all(one < other for one, other in itertools.pairwise(marks)):
            return HELD if seen.steps else unseen
        peak = _peak(fact, planned)
        if peak is None:
            return unseen  # as in a test of rates
        if fact.at.updates_made > seen.latest + FEWEST_STEPS:
            return HELD  # as in a stage before the training
        gets_to = f", at {marks[-1] / peak:.0%} of its peak" if peak > marks[-1] else ""
        rises = f"after all {seen.planned_steps} steps the learning rate still rises{gets_to}"
        expected = "a warmup that ends before the training does"
        if fact.asked is None:
            return Found(expected, f"{seen.name}: {rises}", update=fact.at.updates_made)
        argument, value, where = fact.asked
        return Found(
            expected,
            observed=f"{argument}={value} in {seen.planned_steps} updates; {rises}",
            where=where,
            update=fact.at.updates_made,
            hint=f"Set {argument} to a small part of the {seen.planned_steps} updates.",
        )

    def judge_by_hand(self, fact: RatesByHand) -> Verdict:
        gets_to = fact.rates[-1] / fact.made_with if fact.made_with else 1.0
        if fact.updates < FEWEST_STEPS or fact.falls or fact.rates[0] * RISES > fact.rates[-1] or gets_to > NEVER:
            return HELD
        return Found(
            expected="a warmup that ends before the training does",
            observed=f"the learning rate that the script sets rises in all {fact.updates} updates, but only reaches "
            f"{gets_to:.0%} of the {fact.made_with:.3g} that the optimizer was made with",
            update=fact.at.updates_made,
            hint="Check whether the rate is computed in updates or in epochs.",
        )


SHORT, LONG = {"case": "too-short"}, {"case": "too-long"}
"""What a repair of a schedule must know: whether it ends before the training, or the training before it."""


class WrongLength(Check):
    """The learning rate schedule ends well before the training, or the training before the schedule.

    ## Why is this a bug?
    A schedule that is too short leaves the learning rate at its final value, usually 0, for the remaining updates: they
    change nothing or, if a cosine rises again, undo what the decay was for. One that is too long stops at a rate that
    is still high. Neither crashes, and the loss curve looks like one of a training that has converged.

    ## What to do
    Make the schedule for epochs * ceil(batches per epoch / accumulated batches) steps, and step it once per update.

    Count the batches of the training loader (after `accelerator.prepare`, which divides them among processes), and not
    the rows of the dataset. After resuming, continue with the epoch that has not been run yet.

    ## When it is right
    Warm restarts and other schedules without an end are not compared with the number of updates. A schedule may be over
    before the training if the rate stays at a floor from then on, such as a tenth of its peak. A run that is
    interrupted, or resumes an earlier one, may stop before its schedule does. It is reported if every epoch is left
    after the same part of the batches that the schedule was made for. A run that a number of updates ends in the middle
    of an epoch is not measured in whole epochs. If an evaluation may have ended the training early, this is the warning
    `schedule::may-be-too-long`.
    """

    explains = ("schedule::lr-zero", "schedule::may-be-too-long", "rows::epoch-cut-short")

    def judge(self, fact: ScheduleOver) -> Verdict:
        seen, made, end = fact.seen, fact.at.updates_made, fact.end
        if not fact.drives or end is None:
            return _length_held(fact)
        where, ends = seen.made or seen.where, min(end + 1, made)
        if fact.is_over_early() and not self._goes_on_at_its_end(fact, end):
            if fact.makes_a_pass_more():
                return Found(**seen.pass_more, where=where, update=ends, details=SHORT)
            over = f"{seen.name}: the schedule is over after {end} of {seen.planned_steps} steps"
            return Found(seen.expected_length, over, where, ends, details=SHORT)
        if self._is_too_long(fact):
            return Found(seen.expected_length, f"{seen.name}: {fact.stops_early}", where, ends, details=LONG)
        if of_whole_passes := self._of_whole_passes(fact, end):
            return Found(seen.expected_length, f"{seen.name}: {of_whole_passes}", where, made, details=LONG)
        return _length_held(fact)

    def _goes_on_at_its_end(self, fact: ScheduleOver, end: int) -> bool:
        """Whether a schedule stays, from its end on, at a learning rate with which a training may go on."""
        if fact.seen.rate is None or fact.stops_at() <= NEGLIGIBLE:
            return False
        marks = [fact.rate(end + round((fact.seen.planned - end) * part / 5)) for part in range(6)]
        return all(math.isclose(mark, marks[0], rel_tol=1e-6) for mark in marks)

    def _is_too_long(self, fact: ScheduleOver) -> bool:
        if not fact.outlasts_the_training() or fact.training.restored:
            return False
        # It may have been stopped early.
        return not fact.training.evaluated_between or fact.counts_other_units()

    def _of_whole_passes(self, fact: ScheduleOver, end: int) -> str | None:
        """A schedule is made for whole passes, and each of three or more is left at the same batch."""
        training = fact.training
        if training.known or training.shortened or training.restored or not fact.at.complete:
            return None
        if not fact.has_steps_left() or training.epochs < 3 or len(training.extents) > 1:
            return None
        batches, planned = next(iter(training.extents))
        if planned is None or batches >= planned:
            return None
        # The last batch may have been fetched for nothing.
        left_after = (n for n in (batches, batches - 1) if n)
        used = next((n for n in left_after if abs(end - fact.seen.planned * planned / n) <= fact.allowed()), None)
        if used is None:
            return None
        return f"the schedule is made for {end} steps, with epochs of {planned} batches, but each is left after {used}"


def _length_held(fact: ScheduleOver) -> Verdict:
    """Whether another length of the schedule would have been seen."""
    if not fact.training.known or fact.end is None:
        return NothingToJudge(NOT_AHEAD)
    return HELD if fact.training.lengths_are_seen else NothingToJudge(TOO_SHORT)


def _peak(fact: ScheduleOver, planned: int) -> float | None:
    """The highest rate of a schedule that rises up to the planned step; None where it never stops."""
    before = planned
    for step in (round(planned * times) for times in LATER):
        if step > max(LONGEST_WARMUP, 16 * planned):
            break
        try:
            now = fact.rate(step)
        except NotKnown:  # a rate that grows without end is too large at some step
            break
        if not math.isfinite(now):
            break
        if now <= fact.rate(before):
            return fact.rate(_last_rise(fact, before, step))
        before = step
    return None


def _last_rise(fact: ScheduleOver, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fact.rate(middle) > fact.rate(middle - 1) else (low, middle)
    return low
