from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.watch.check import HELD, NOTHING_TO_JUDGE, NothingToJudge
from harness.watch.checks.schedule.length import MayBeTooLong, WarmupNeverEnds, WrongLength
from harness.watch.checks.schedule.observations.plateaus import PlateauStepped
from harness.watch.checks.schedule.observations.rates import RatesByHand, RatesUsed
from harness.watch.checks.schedule.rates import DecaysTooFast, LrZero, PlateauWrongMode, RatesForFactors
from harness.watch.checks.schedule.steps import (
    DrivesAnotherOptimizer,
    NeverStepped,
    SteppedBeforeUpdate,
    SteppedInWrongUnit,
)
from harness.watch.events import Position
from harness.watch.facts.scheduler_ledger import NOT_AHEAD, TOO_SHORT, ScheduledRun, ScheduleOver, SchedulerSeen
from tests.checks.judging import Case

BAD = Path(__file__).parent / "never-stepped" / "bad.py"


def linear(end: int, peak: float = 1e-3) -> Callable[[int], float]:
    return lambda step: peak * max(0.0, 1 - step / end)


TO_ZERO = linear(100)
PLATEAU = BAD.with_name("bad_plateau.py")
BY_A_LIBRARY = "a library may step it after an evaluation that a shortened pass does not come to"


def over(
    end: int | None = 100,
    planned: float = 100,
    *,
    rate: Callable[[int], float] | None = TO_ZERO,
    steps: int = 100,
    training: dict[str, Any] | None = None,
    **seen: Any,
) -> ScheduleOver:
    """A schedule that was made for ``end`` steps and gets ``planned``, in a training of 100 updates in two passes."""
    about = {"epochs": 2, "planned_updates": 100.0, "optimizers": 1, **(training or {})}
    two = about.pop("is_one_of_two", False)
    asked = about.pop("asked", None)
    known: dict[str, Any] = {"optimizer": 1, "updates": 100, "latest": 100, **seen}
    scheduler = SchedulerSeen("LinearLR", "train.py:5", rate, end, steps, planned=planned, **known)
    return ScheduleOver(
        seen=scheduler,
        training=ScheduledRun(**about),
        is_one_of_two=two,
        asked=asked,
        where="train.py:5",
        at=Position(100, 100),
    )


NO_STEPS = over(steps=0, planned=0)
NOT_ITS_OWN: dict[str, Any] = {"optimizer": None, "updates": 0, "latest": 0}
RISES: dict[str, Any] = {"end": None, "rate": lambda step: 1e-3 * min(step / 1000, 1.0)}
WARMUP_UNSEEN = NothingToJudge("no schedule of eight steps or more that can be computed ahead")

RAMP = [0.001 * part for part in range(21)]


def plateau(where: str, *, steps: int = 0, shortened: bool = False) -> ScheduleOver:
    """One that waits for a metric, in a script whose every line that steps something was come to."""
    about = {"stepped_at": {f"{PLATEAU}:17"}, "shortened": shortened}
    fact = over(None, rate=None, steps=steps, training=about)
    return replace(fact, seen=replace(fact.seen, name="ReduceLROnPlateau"), where=where)


def by_hand(rates: list[float], updates: int = 100, made_with: float = 0.1, falls: bool = False) -> RatesByHand:
    return RatesByHand(updates=updates, made_with=made_with, rates=rates, falls=falls)


CASES = [
    Case(DecaysTooFast, over(), HELD),
    Case(DecaysTooFast, over(rate=None), NOTHING_TO_JUDGE),
    Case(DecaysTooFast, over(None, rate=lambda step: 1e-3 * 0.99**step), HELD),
    Case(DecaysTooFast, over(None, rate=lambda step: 1e-3 * 0.5**step), "the rate is below 1e-04 of its peak"),
    Case(DecaysTooFast, over(None, rate=lambda step: 1e-3 * 0.5**step, training={"may_be_left": True}), HELD),
    Case(DecaysTooFast, by_hand([0.1] * 21), HELD),
    Case(DecaysTooFast, by_hand([0.1] * 14 + [1e-9] * 7), "for the last 33% of the updates"),
    Case(DecaysTooFast, by_hand([0.1] * 15 + [1e-9] * 6), HELD),
    Case(DecaysTooFast, by_hand([0.1] * 14 + [-0.02] * 7), "the learning rate is negative or 0, down to -0.02"),
    Case(
        WarmupNeverEnds,
        by_hand(RAMP),
        "rises in all 100 updates, but only reaches 20% of the 0.1 that the optimizer was made with",
    ),
    Case(WarmupNeverEnds, by_hand(RAMP, made_with=0.03), HELD),
    Case(WarmupNeverEnds, by_hand(RAMP, falls=True), HELD),
    Case(WarmupNeverEnds, by_hand(RAMP, updates=7), HELD),
    Case(WarmupNeverEnds, by_hand([0.01 + rate / 4 for rate in RAMP]), HELD),
    Case(WarmupNeverEnds, by_hand(RAMP, made_with=0.0), HELD),
    Case(LrZero, RatesUsed(), HELD),
    Case(LrZero, RatesUsed(zero=0.0, update=9), "the learning rate is 0 for three updates in a row"),
    Case(PlateauWrongMode, PlateauStepped(mode="min", value=0.3), HELD),
    Case(
        PlateauWrongMode,
        PlateauStepped(mode="min", value=0.8, misjudged=True),
        "but the scheduler is given the accuracy: 0.8",
    ),
    Case(
        PlateauWrongMode,
        PlateauStepped(mode="max", value=0.3, misjudged=True),
        "but the scheduler is given the loss: 0.3",
    ),
    Case(RatesForFactors, over(), HELD),
    Case(RatesForFactors, over(rate=None), NOTHING_TO_JUDGE),
    Case(RatesForFactors, over(base=1e-3), HELD),
    Case(RatesForFactors, over(base=1e-3, rate=linear(100, 1e-6)), "LinearLR multiplies the rate by at most 0.001"),
    Case(DrivesAnotherOptimizer, over(), HELD),
    Case(
        DrivesAnotherOptimizer,
        over(**NOT_ITS_OWN),
        "LinearLR changes the learning rate of an optimizer that makes no updates",
    ),
    Case(
        DrivesAnotherOptimizer,
        over(idle=8, replaced=True, latest=40),
        "LinearLR still drives an optimizer whose last update was update 40",
    ),
    Case(DrivesAnotherOptimizer, over(idle=8, replaced=True, takes_turns=True), HELD),
    Case(DrivesAnotherOptimizer, over(training={"is_one_of_two": True}), "share one optimizer"),
    Case(NeverStepped, over(), HELD),
    Case(
        NeverStepped, over(steps=0, training={"stepped_at": {f"{BAD}:16"}}), "LinearLR was never stepped in 100 updates"
    ),
    Case(NeverStepped, over(steps=0, rate=lambda step: 1e-3), HELD),
    Case(NeverStepped, over(steps=0, training={"known": False}), HELD),
    Case(NeverStepped, plateau(f"{PLATEAU}:9"), "ReduceLROnPlateau was never stepped in 100 updates"),
    Case(NeverStepped, plateau(f"{PLATEAU}:9", shortened=True), "ReduceLROnPlateau was never stepped in 100 updates"),
    Case(NeverStepped, plateau(f"{PLATEAU}:10"), "ReduceLROnPlateau was never stepped in 100 updates"),
    Case(NeverStepped, plateau(f"{PLATEAU}:10", shortened=True), NothingToJudge(BY_A_LIBRARY)),
    Case(NeverStepped, plateau(f"{PLATEAU}:9", steps=3), HELD),
    Case(SteppedBeforeUpdate, over(before=[0, 1]), HELD),
    Case(SteppedBeforeUpdate, over(before=[1, 2]), "the scheduler was stepped before the first update"),
    Case(SteppedInWrongUnit, over(), HELD),
    Case(SteppedInWrongUnit, over(None), NothingToJudge(NOT_AHEAD)),
    Case(
        SteppedInWrongUnit,
        over(2, rate=linear(2)),
        "the schedule is over after 2 of 100 steps; the script steps it at every update",
    ),
    Case(SteppedInWrongUnit, over(100, 400, steps=400), "it is stepped 4 times per update"),
    Case(SteppedInWrongUnit, over(100, 2, steps=2), "the script steps it once per epoch"),
    Case(MayBeTooLong, over(), HELD),
    Case(MayBeTooLong, over(None), NothingToJudge(NOT_AHEAD)),
    Case(MayBeTooLong, over(training={"lengths_are_seen": False}), NothingToJudge(TOO_SHORT)),
    Case(
        MayBeTooLong,
        over(200, rate=linear(200), training={"evaluated_between": True}),
        "so the learning rate stops at 50% of its peak",
    ),
    Case(MayBeTooLong, over(200, rate=linear(200)), HELD),
    Case(MayBeTooLong, over(200, rate=None, training={"evaluated_between": True}), HELD),
    Case(WarmupNeverEnds, over(), HELD),
    Case(WarmupNeverEnds, over(planned=7), WARMUP_UNSEEN),
    Case(WarmupNeverEnds, over(**RISES, latest=80), HELD),
    Case(WarmupNeverEnds, over(**RISES), "after all 100 steps the learning rate still rises, at 10% of its peak"),
    Case(WarmupNeverEnds, over(**RISES, training={"asked": ("warmup_steps", 1000, "train.py:3")}), "warmup_steps=1000"),
    Case(WrongLength, over(), HELD),
    Case(WrongLength, over(None), NothingToJudge(NOT_AHEAD)),
    Case(WrongLength, over(training={"lengths_are_seen": False}), NothingToJudge(TOO_SHORT)),
    Case(WrongLength, over(**NOT_ITS_OWN), HELD),
    Case(WrongLength, over(70, rate=linear(70)), "the schedule is over after 70 of 100 steps"),
    Case(WrongLength, over(50, rate=linear(50)), "one pass too early"),
    Case(WrongLength, over(70, rate=lambda step: max(1e-3 * (1 - step / 100), 3e-4)), HELD),
    Case(
        WrongLength,
        over(200, rate=linear(200)),
        "is made for 200 steps but gets only 100, so the learning rate stops at 50%",
    ),
    Case(
        WrongLength,
        over(200, rate=linear(200), training={"left_after": (6, 12), "cut": True, "epochs": 2}),
        "so the learning rate stops at 50% of its peak; the last pass over the data was left after 6 of 12 batches",
    ),
    Case(WrongLength, over(200, rate=linear(200), training={"evaluated_between": True}), HELD),
    Case(
        WrongLength,
        over(200, rate=linear(200), training={"known": False, "epochs": 4, "extents": {(25, 50)}}),
        "LinearLR: the schedule is made for 200 steps, with epochs of 50 batches, but each is left after 25",
    ),
]
