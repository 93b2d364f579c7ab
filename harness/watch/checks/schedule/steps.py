from __future__ import annotations

import linecache
import re
from typing import Any

from harness.watch.check import HELD, Check, Found, NothingToJudge, Verdict
from harness.watch.facts.scheduler_ledger import FEWEST_IDLE, NOT_AHEAD, ScheduleOver

A_STEP = re.compile(r"\.step\(|[^\w\s.].*\.step\b")
"""A line that calls a step(), or hands it on to be called; not one that only names it and lacks the parentheses."""

FEWEST_UPDATES = 20
"""Updates by hand-made batches that are more than a trial, after which a schedule should have made a step."""

TIMES_TOO_SHORT = 3
"""Times its length that the training makes, from which on a schedule as long as the epochs are is one of epochs."""

STEPS_AN_UPDATE = 1.5
"""Steps for an update from which on a scheduler is stepped at every micro-batch, or by two callers."""


class DrivesAnotherOptimizer(Check):
    """The scheduler belongs to a different optimizer from the one that makes the updates.

    ## Why is this a bug?
    A scheduler writes into the parameter groups of the optimizer that it was made with. If the optimizer is made again
    afterwards, or two schedulers get the same one of two optimizers, the optimizer that trains keeps its first learning
    rate: no warmup, no decay.

    ## What to do
    Create the scheduler with the optimizer that you step, after that optimizer is final.

    ## When it is right
    Several optimizers with a scheduler for only some of them are not reported, as long as two conditions hold. Every
    scheduler that is stepped has an optimizer that makes updates. No two schedulers with the same settings share one
    optimizer while another optimizer has none. Different schedulers on one optimizer are chained. An optimizer that
    wraps the one that makes updates, and shares its groups, counts as that one.
    """

    explains = (
        "schedule::lr-zero",
        "schedule::stepped-before-update",
        "schedule::never-stepped",
        "schedule::rates-for-factors",
        "schedule::warmup-never-ends",
        "schedule::decays-too-fast",
        "schedule::stepped-in-wrong-unit",
        "schedule::wrong-length",
        "schedule::may-be-too-long",
    )

    def judge(self, fact: ScheduleOver) -> Verdict:
        seen, expected = fact.seen, "a scheduler for the optimizer that makes the updates"
        if not fact.drives and seen.steps > 1 and fact.training.optimizers:
            how = f"{seen.name} changes the learning rate of an optimizer that makes no updates"
            return Found(expected, how, update=1)
        replaced = seen.idle >= FEWEST_IDLE and seen.replaced and not seen.takes_turns
        if fact.drives and replaced and not fact.is_flat():
            latest = seen.latest
            how = f"still drives an optimizer whose last update was update {latest}: another optimizer replaced it"
            return Found(expected, f"{seen.name} {how}", update=latest + 1)
        if fact.is_one_of_two:
            how = f"{seen.name} and another scheduler share one optimizer, while another optimizer has none"
            return Found(expected, how, update=1)
        return HELD


class NeverStepped(Check):
    """A learning rate scheduler is created but never stepped.

    ## Why is this a bug?
    A scheduler changes nothing by being there: the learning rate stays at its first value. With a linear decay, that is
    the highest value, to the end; with a warmup it is 0, or close to it, and the model learns nothing.

    ## What to do
    Call scheduler.step() after optimizer.step(), once per update, or once per epoch if its length is in epochs; a
    ReduceLROnPlateau wants the metric, after each evaluation.

    `accelerator.prepare` returns a scheduler that still has to be stepped. Trainer steps the one that it gets.

    ## When it is right
    A constant schedule changes nothing anyway, and is not reported. Neither is one whose `step()` is on a line of the
    script that was not reached: it may wait for a later epoch, or for the last batch of a shortened pass.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    explains = ("schedule::lr-zero",)

    def judge(self, fact: ScheduleOver) -> Verdict:
        seen, training = fact.seen, fact.training
        if not fact.drives or seen.steps or not training.known:
            return HELD
        by_metric = seen.name == "ReduceLROnPlateau"
        if by_metric and training.shortened and not self._is_made_by_the_script(fact):
            return NothingToJudge("a library may step it after an evaluation that a shortened pass does not come to")
        trained = training.epochs or seen.updates >= FEWEST_UPDATES
        if not trained or fact.is_flat() or self._may_step_later(fact):
            return HELD
        return Found(
            expected="scheduler.step(loss) after each evaluation"
            if by_metric
            else "scheduler.step() after each update or each epoch",
            observed=f"{seen.name} was never stepped in {seen.updates} updates",
            update=1,
        )

    def _is_made_by_the_script(self, fact: ScheduleOver) -> bool:
        file, _, line = (fact.where or "").rpartition(":")
        return line.isdigit() and fact.seen.name in linecache.getline(file, int(line))

    def _may_step_later(self, fact: ScheduleOver) -> bool:
        """Whether some line that calls a step() was not come to.

        It may wait for a number of epochs, or, where passes were shortened, for the last batch, which is told by
        len(): ``if i + 1 == len(loader): scheduler.step()``.
        """
        stepped_at = fact.training.stepped_at
        files = {place.rpartition(":")[0] for place in {*stepped_at, fact.where or ""}} | {*fact.training.files}
        lines = ((f"{file}:{n}", line) for file in files for n, line in enumerate(linecache.getlines(file), start=1))
        return any(A_STEP.search(line.partition("#")[0]) and place not in stepped_at for place, line in lines)


class SteppedBeforeUpdate(Check):
    """The scheduler is stepped before the optimizer, so the schedule's first learning rate is never used.

    ## Why is this a bug?
    A scheduler sets its first learning rate when it is made. If it is stepped before the first update, it moves on to
    the second, and every update uses the learning rate of the next one; the last update uses the final learning rate,
    usually 0.

    ## What to do
    Call scheduler.step() after optimizer.step(), once per update or once per epoch, whichever its length is given in.

    ## When it is right
    A scheduler that was stepped several times before the first update, as when a training is resumed by hand, is not
    reported.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    explains = (
        "schedule::lr-zero",
        "schedule::rates-for-factors",
        "schedule::warmup-never-ends",
        "schedule::decays-too-fast",
        "schedule::stepped-in-wrong-unit",
        "schedule::wrong-length",
        "schedule::may-be-too-long",
    )

    def judge(self, fact: ScheduleOver) -> Verdict:
        if not fact.drives or not fact.seen.stepped_first:
            return HELD
        return Found(
            expected="optimizer.step() before scheduler.step()",
            observed="the scheduler was stepped before the first update, so its first learning rate is skipped",
            where=fact.seen.where,
            update=1,
        )


class SteppedInWrongUnit(Check):
    """The scheduler is stepped in a different unit from its length, such as once per epoch instead of per update.

    ## Why is this a bug?
    A scheduler counts its steps and knows nothing of batches or epochs. If it is made for updates and stepped once an
    epoch, it hardly begins. If it is made for epochs and stepped at every update, or made for updates and stepped at
    every micro-batch, it ends too early. Its last learning rate is reached while most of the training is still to come.

    ## What to do
    Make the schedule for epochs * ceil(batches per epoch / accumulated batches) steps, and step it once per update.

    Step a schedule in epochs (`CosineAnnealingLR(optimizer, T_max=epochs)`) once, at the end of each epoch. If
    gradients are accumulated, a scheduler that went through `accelerator.prepare` skips steps.

    ## When it is right
    Schedules without an end (`StepLR`, `ExponentialLR`, a constant rate) and `ReduceLROnPlateau` are not compared with
    the number of steps; a run that is interrupted or resumes an earlier one may stop before its schedule does.

    ## References
    - https://github.com/huggingface/accelerate/issues/963
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    explains = ("schedule::lr-zero", "schedule::wrong-length", "schedule::may-be-too-long")

    def judge(self, fact: ScheduleOver) -> Verdict:
        seen, unit = fact.seen, self._unit(fact) if fact.drives else None
        if unit is None:
            return HELD if fact.training.known and fact.end is not None else NothingToJudge(NOT_AHEAD)
        each = seen.steps / seen.updates if seen.updates else 1.0
        # As many times an update as its length was exceeded: the unit explains it.
        by_unit = abs(each * (seen.end or 0) - seen.planned) <= fact.allowed()
        detail: dict[str, Any] = {"expected": seen.expected_length, "observed": unit}
        if each > STEPS_AN_UPDATE and not by_unit and fact.makes_a_pass_more():
            detail = seen.pass_more
        update = min((seen.end or 0) + 1, fact.at.updates_made)
        return Found(detail["expected"], detail["observed"], seen.where, update, detail.get("hint"))

    def _unit(self, fact: ScheduleOver) -> str | None:
        seen, training = fact.seen, fact.training
        if seen.end is None or not seen.steps:
            return None
        if fact.is_over_early():
            observed = f"{seen.name}: the schedule is over after {seen.end} of {seen.planned_steps} steps"
            if seen.end <= training.epochs + 1 and seen.planned >= TIMES_TOO_SHORT * seen.end:
                return f"{observed}; the script steps it at every update"
            each = seen.steps / seen.updates if seen.updates else 1.0
            return f"{observed}; it is stepped {each:.3g} times per update" if each > STEPS_AN_UPDATE else None
        once_an_epoch = training.planned_updates > 3 and seen.planned <= training.epochs + 1
        once_an_epoch = once_an_epoch and training.epochs + 1 < training.planned_updates
        if once_an_epoch and fact.outlasts_the_training() and not training.restored:
            return f"{seen.name}: {fact.stops_early}; the script steps it once per epoch"
        return None
