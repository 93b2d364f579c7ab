"""Scheduler ledger: how each learning rate scheduler was stepped, and what is wrong with it in the end."""

from __future__ import annotations

import itertools
import linecache
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from harness.torch_objects import held_by_any, share_groups
from harness.watch.check import Fact
from harness.watch.events import End, Load, Pass, PassEnds, SchedulerStep, SkippedStep, StepBegins, TrainerMade
from harness.watch.facts.rhythm import Rhythm
from harness.watch.facts.schedules import MOST_STEPS, NotComputable, schedule_of

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

NO_SCHEDULER = "no learning rate scheduler"
"""Why a check of schedules did not look, whatever else it needs."""

NEGLIGIBLE = 1e-4
"""Largest share of its peak at which a learning rate changes nothing any more. A guess: at a peak of 1e-3, which is
high for fine-tuning, it is 1e-7, and changes the last digit of a float32 weight."""

IDLE = 6
"""Largest number of 21 moments, evenly over a training, at which the rate of a schedule without an end may be
negligible. A guess: more than a quarter of the training."""

TOLERANCE = 0.02
"""Largest share of its steps by which a schedule may be shorter or longer than the training. A guess: rounding in the
planning of steps is below it."""

MAKES_A_DIFFERENCE = 0.05
"""Smallest share of its peak at which a learning rate that stops there shows that the schedule went on. A guess."""

RATE = 0.1
"""Learning rates below which no factor is chosen by chance that is the same. A guess: a factor of 0.1 is one."""

AS_GIVEN = 1e-3
"""Largest difference between such a factor and the rate, as a share: a warmup may end between two steps."""

A_STEP = re.compile(r"\.step\(|[^\w\s.].*\.step\b")
"""A line that calls a step(), or hands it on to be called; not one that only names it and lacks the parentheses."""

FEWEST_IDLE = 8
"""Steps in a row of a scheduler whose optimizer has been replaced. A guess: a few happen where the two change over."""

FEWEST_UPDATES = 20
"""Updates by hand-made batches that are more than a trial, after which a schedule should have made a step. A guess."""

FEWEST_STEPS = 8
"""Smallest number of steps after which a rate that only rose counts as one that never gets to its peak. A guess: a
shorter training may be a trial of a long one's warmup. As many updates without its optimizer show that the training
went on to another one."""


class Fault(Enum):
    """What is wrong with a scheduler."""

    OF_ANOTHER_OPTIMIZER = auto()
    """It belongs to an optimizer that makes no updates."""
    SHARES_AN_OPTIMIZER = auto()
    """Another scheduler drives its optimizer too, while another optimizer has none."""
    STEPPED_FIRST = auto()
    """It was stepped before the first update."""
    NEVER_STEPPED = auto()
    RISES_ONLY = auto()
    """The training is over before its warmup is."""
    WRONG_UNIT = auto()
    """It does not end with the training, because it is stepped once an epoch, or at every update, or more often."""
    WRONG_LENGTH = auto()
    """It does not end with the training."""
    TOO_LONG_UNLESS_STOPPED = auto()
    """The training stops before it ends, as it does where it is stopped early."""
    NEGLIGIBLE_TOO_SOON = auto()
    """It has no end, and comes to nothing long before the training is over."""
    SQUARED = auto()
    """Its factors are learning rates themselves, by which the optimizer's is multiplied."""


@dataclass(eq=False)
class SchedulerSeen:
    """A scheduler, and how it was stepped."""

    name: str
    made: str | None
    rate: Callable[[int], float] | None
    end: int | None
    """See :class:`harness.watch.facts.schedules.Schedule` for both."""
    steps: int = 0
    moved: int = 0
    """Steps that moved it on."""
    planned: float = 0.0
    """Steps that the unshortened run makes."""
    is_estimate: bool = False
    """Whether that is not known exactly."""
    rhythm: Rhythm = field(default_factory=Rhythm)
    """Its steps in the pass at hand."""
    stands_at: int = 0
    """Its own count."""
    before: list[int] = field(default_factory=list)
    """How often it had been moved on at each of the first updates, those that a GradScaler left out included."""
    where: str | None = None
    """Of its latest step."""
    updates: int = 0
    """Steps of its optimizer."""
    latest: int = 0
    """The update in which the latest of them was made."""
    base: float | None = None
    """The learning rate that a function's factors are multiplied with."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it was made with and where it stood, as far as these are plain values, and after how many updates."""
    optimizer: int | None = None
    """The number of its optimizer, where that made steps."""
    stepped_at: int = 0
    """The updates that had been made at its latest step."""
    idle: int = 0
    """Its latest steps, in a row, before each of which another optimizer made updates and its own none."""
    takes_turns: bool = False
    """Whether its optimizer has made updates again after that."""
    replaced: bool = False
    """Whether another optimizer has updated its optimizer's parameters meanwhile."""

    @property
    def planned_steps(self) -> str:
        return f"{'about ' if self.is_estimate else ''}{self.planned:.0f}"

    def update_comes(self) -> None:
        if len(self.before) < 2:
            self.before.append(self.moved)

    @property
    def stepped_first(self) -> bool:
        return self.before[:1] == [1] and (len(self.before) == 1 or self.before[1] in (1, 2))


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a scheduler: one fault at most, but that one may share an optimizer besides."""

    fault: Fault
    of: SchedulerSeen
    update: int
    observed: str = ""
    """What its steps came to, where that takes numbers."""

    @property
    def expected_length(self) -> str:
        return f"as many scheduler steps as the schedule was made for ({self.of.end})"


class SchedulerLedger(Fact):
    """All schedulers, and what the unshortened run makes of their steps.

    The verdicts are there when checks are told that the loop is over.
    """

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._verdicts: list[Verdict] = []
        self._seen: WeakKeyDictionary[Any, SchedulerSeen] = WeakKeyDictionary()
        self._all: list[SchedulerSeen] = []
        """Those that are gone included."""
        self._planned_updates = 0.0
        """Updates that the unshortened run makes."""
        self._updates = Rhythm()
        """Updates in the pass at hand."""
        self._epochs = 0
        self._extents: set[tuple[int, int | None]] = set()
        """Batches of the passes that trained, and how many each would have had."""
        self._known = True
        """Whether every pass that trained was gone through to its end."""
        self._cut = self._shortened = False
        """Whether the latest pass that trained was left before its end; whether any was shortened."""
        self._between = False
        """Whether an evaluation came between two passes that trained."""
        self._tested = False
        """Whether one came since the latest pass that trained."""
        self._restored = False
        """Whether a scheduler's state was loaded."""
        self._accumulated = 1
        """Batches for an update, at most."""
        self._rows = 1
        """Rows in a batch, at most."""
        self._may_be_left = False
        """Whether a training that was not shortened might end in the middle of a pass."""
        self._batches = 0
        """Batches of a shortened pass, at most."""
        self._stepping = 0
        """Optimizers that made steps."""
        self._stepped_at: set[str] = set()
        """The lines of the script at which optimizers made steps."""
        self._numbers: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        """Of those that are alive."""

    def with_fault(self, *faults: Fault) -> list[Verdict]:
        return [verdict for verdict in self._verdicts if verdict.fault in faults]

    @property
    def any_seen(self) -> bool:
        """Whether there is a scheduler at all."""
        return bool(self._all)

    @property
    def any_with_end(self) -> bool:
        """Whether one's end can be compared with the training's."""
        return self._known and any(seen.end is not None and seen.steps for seen in self._all)

    @property
    def any_with_rates(self) -> bool:
        """Whether one's learning rates are known for the whole training."""
        return self._known and any(seen.rate is not None and seen.steps for seen in self._all)

    def seen(self, scheduler: Any) -> SchedulerSeen | None:
        """What is known of a scheduler; None where it is a part of another."""
        return self._seen.get(scheduler)

    def outlasts_the_training(self, seen: SchedulerSeen) -> bool:
        """Whether a schedule has steps left when the training is over; asked at the end."""
        return self._known and seen.end is not None and seen.planned < seen.end - self._allowed(seen)

    @property
    def rounding(self) -> int:
        """Updates by which a plan may be wrong that rounds in each epoch; none are where passes were shortened."""
        return 0 if self._shortened else 1 + self._epochs

    # What happens

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._may_be_left = self._may_be_left or getattr(event.trainer.args, "max_steps", 0) > 0

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        seen = self._of(event.scheduler)
        seen.steps += 1
        seen.where = event.where
        self._follow(seen, event.scheduler)
        stands_at = getattr(event.scheduler, "last_epoch", seen.stands_at + 1)
        forward = max(0, min(1, stands_at - seen.stands_at))  # step(epoch) may leave it where it is
        seen.stands_at = stands_at
        # One that is met at its first step has been moved on by it already.
        seen.moved += min(1, stands_at) if seen.steps == 1 else forward
        of = self._pass_at_hand()
        if of is None:
            seen.planned += forward
        elif forward:
            seen.rhythm.beat(of.batches)

    def _follow(self, seen: SchedulerSeen, scheduler: Any) -> None:
        """Whether the optimizer that it drives still makes the updates."""
        made = self.monitor.updates_made
        if made > seen.stepped_at:
            seen.takes_turns = seen.takes_turns or (seen.idle >= FEWEST_IDLE and seen.latest > seen.stepped_at)
            seen.idle = seen.idle + 1 if seen.latest <= seen.stepped_at else 0
        seen.stepped_at = made
        own = getattr(scheduler, "optimizer", None)
        if seen.idle == FEWEST_IDLE and isinstance(own, Optimizer):
            held = held_by_any([own])
            others = [each for each in self._numbers if not share_groups(own, each)]
            seen.replaced = any(held & held_by_any([each]) for each in others)

    def _pass_at_hand(self) -> Pass | None:
        """The pass that the loop is in; an evaluation that came in its middle is none."""
        training = next((each for each in reversed(self.monitor.passes) if each.trains), None)
        if training is None and self.monitor.batch is not None and not self.monitor.batch.of.over:
            return self.monitor.batch.of
        return training

    def _of(self, scheduler: Any) -> SchedulerSeen:
        seen = self._seen.get(scheduler)
        if seen is None:
            name, made = type(scheduler).__name__, self.monitor.schedulers.get(scheduler)
            schedule = schedule_of(scheduler)
            seen = SchedulerSeen(name, made, schedule.rate, schedule.end, stands_at=getattr(scheduler, "last_epoch", 0))
            plain = {key: value for key, value in vars(scheduler).items() if isinstance(value, (bool, int, float, str))}
            seen.settings = plain | {"class": name, "updates": self.monitor.updates_made}
            if schedule.problem is not None:
                self._cannot_compute(seen, schedule.problem)
            if isinstance(scheduler, LambdaLR):
                seen.base = float(scheduler.base_lrs[0])
            self._seen[scheduler] = seen
            self._all.append(seen)
        return seen

    def _cannot_compute(self, seen: SchedulerSeen, problem: object) -> None:
        made = f" ({seen.made})" if seen.made else ""
        self.monitor.note(f"whether {seen.name}{made} ends with the training is not known: it fails ahead: {problem}")

    def on_step_begins(self, event: StepBegins) -> None:
        optimizer = event.optimizer
        if optimizer not in self._numbers:
            self._stepping += 1
            self._numbers[optimizer] = self._stepping
            self.monitor.find_schedulers()
        if (of := self._pass_at_hand()) is not None:
            self._updates.beat(of.batches)
        if event.where is not None:
            self._stepped_at.add(event.where)
        for seen in self._schedulers_of(optimizer):
            seen.optimizer = seen.optimizer or self._numbers[optimizer]
            seen.updates += 1
            seen.latest = event.update
            seen.update_comes()

    def on_skipped_step(self, event: SkippedStep) -> None:
        """The scheduler comes after the update, whether a GradScaler left that out or not."""
        for seen in self._schedulers_of(event.optimizer):
            seen.update_comes()

    def _schedulers_of(self, optimizer: Optimizer) -> list[SchedulerSeen]:
        there = list(self.monitor.schedulers)
        if len(there) > len(self._seen):
            inner = {id(each) for scheduler in there for each in getattr(scheduler, "_schedulers", ())}
            for scheduler in there:
                if id(scheduler) not in inner:
                    self._of(scheduler)
        seen = list(self._seen.items())
        return [each for scheduler, each in seen if share_groups(getattr(scheduler, "optimizer", None), optimizer)]

    def on_pass_ends(self, event: PassEnds) -> None:
        ended = event.of
        if not ended.trains:
            self._tested = True
            return
        self._between = self._between or (self._tested and self._epochs > 0)
        self._tested = False
        self._epochs += 1
        self._known = self._known and not self._cut and not (ended.shortened and ended.planned is None)
        self._cut = not ended.exhausted and not ended.shortened
        if len(self._extents) < 2:
            self._extents.add((ended.batches, ended.planned))
        self._shortened = self._shortened or ended.shortened
        for seen in self._all:
            seen.planned += seen.rhythm.whole(ended)
            seen.is_estimate = seen.is_estimate or seen.rhythm.is_estimate or ended.may_be_left
            seen.rhythm.begin_again()
        self._updates.total = ended.updates
        self._planned_updates += self._updates.whole(ended)
        self._updates.begin_again()
        self._accumulated = max(self._accumulated, self._updates.period)
        self._may_be_left = self._may_be_left or ended.may_be_left
        self._batches = max(self._batches, ended.batches if ended.shortened else 0)
        self._rows = max(self._rows, round(ended.rows / ended.batches) if ended.batches else 1)

    def on_load(self, event: Load) -> None:
        """A schedule that is resumed has been stepped before."""
        if "last_epoch" in event.state and hasattr(event.into, "last_epoch"):
            self._restored = True
            seen = self._of(event.into)
            seen.planned = float(event.state["last_epoch"])
            seen.stands_at = int(event.state["last_epoch"])

    # At the end

    def on_end(self, event: End) -> None:
        self._known = self._known and self.monitor.complete and not (self._cut and self._shortened)
        for seen in self._all:
            try:
                verdict = self._judged(seen)
            except NotComputable as error:
                self._cannot_compute(seen, error)
            else:
                self._verdicts += [] if verdict is None else [verdict]
        self._verdicts += self._two_on_one()

    def _judged(self, seen: SchedulerSeen) -> Verdict | None:
        if seen.optimizer is None:
            stepped_for_nothing = seen.steps > 1 and self.monitor.stepped
            return Verdict(Fault.OF_ANOTHER_OPTIMIZER, seen, 1) if stepped_for_nothing else None
        if seen.idle >= FEWEST_IDLE and seen.replaced and not seen.takes_turns and not self._is_flat(seen):
            observed = (
                f"goes on with an optimizer whose latest update was update {seen.latest}: another one took its place"
            )
            return Verdict(Fault.OF_ANOTHER_OPTIMIZER, seen, seen.latest + 1, observed)
        if seen.stepped_first:
            return Verdict(Fault.STEPPED_FIRST, seen, 1)
        if seen.name == "ReduceLROnPlateau":
            return None
        if not seen.steps:
            trained = self._epochs or seen.updates >= FEWEST_UPDATES
            missing = trained and self._known and not self._is_flat(seen) and not self._may_step_later(seen)
            return Verdict(Fault.NEVER_STEPPED, seen, 1) if missing else None
        if (squared := self._squared(seen)) is not None:
            return squared
        return self._rises_only(seen) or (self._negligible(seen) if seen.end is None else self._length(seen, seen.end))

    def _may_step_later(self, seen: SchedulerSeen) -> bool:
        """Whether some line that calls a step() was not come to.

        It may wait for a number of epochs, or, where passes were shortened, for the last batch, which is told by
        len(): ``if i + 1 == len(loader): scheduler.step()``.
        """
        files = {place.rpartition(":")[0] for place in {*self._stepped_at, seen.made or ""}}
        if not self._epochs:  # how long its epochs are is not known
            files |= self.monitor.locator.users_files()
        lines = ((f"{file}:{n}", line) for file in files for n, line in enumerate(linecache.getlines(file), start=1))
        return any(A_STEP.search(line.partition("#")[0]) and place not in self._stepped_at for place, line in lines)

    def _two_on_one(self) -> list[Verdict]:
        """Two alike on one optimizer while another has none were meant for one each; others are chained."""
        stepped = [seen for seen in self._all if seen.optimizer is not None and seen.steps]
        if self._stepping <= len({seen.optimizer for seen in stepped}):
            return []
        pairs = itertools.combinations(stepped, 2)
        double = next((b for a, b in pairs if a.optimizer == b.optimizer and a.settings == b.settings), None)
        return [] if double is None else [Verdict(Fault.SHARES_AN_OPTIMIZER, double, 1)]

    def _is_flat(self, seen: SchedulerSeen) -> bool:
        if seen.rate is None:
            return False
        last = max(2, seen.updates, round(self._planned_updates))
        return math.isclose(seen.rate(1), seen.rate(last), rel_tol=1e-6)

    def _rises_only(self, seen: SchedulerSeen) -> Verdict | None:
        """Whether the training is over before the warmup is."""
        cycles = seen.name == "CyclicLR"
        if seen.rate is None or not self._known or seen.planned < FEWEST_STEPS or cycles or self._restored:
            return None
        planned = round(seen.planned)
        marks = [seen.rate(round((planned - 1) * part / 10)) for part in range(11)]
        if not all(one < other for one, other in itertools.pairwise(marks)):
            return None
        later = [seen.rate(round(planned * times)) for times in (1.5, 2, 4, 8, 16)]
        has_peak = math.isfinite(later[-1]) and later[-1] <= max(later[:-1])
        if not has_peak or self.monitor.updates_made > seen.latest + FEWEST_STEPS:
            return None  # as in a test of rates, or in a stage before the training
        return Verdict(
            Fault.RISES_ONLY,
            seen,
            self.monitor.updates_made,
            f"{seen.name}: after all {seen.planned_steps} steps the learning rate still rises"
            + (f"; it gets to {marks[-1] / max(later):.0%} of its peak" if max(later) > marks[-1] else ""),
        )

    def _length(self, seen: SchedulerSeen, end: int) -> Verdict | None:
        """The schedule's end, compared with the training's."""
        allowed = self._allowed(seen)
        if seen.planned > end + allowed:
            return None if self._may_end_with(seen, end) else self._too_short(seen, end)
        if seen.planned >= end - allowed:
            return None
        return self._too_long(seen, end, allowed) if self._known else self._of_whole_passes(seen, end, allowed)

    def _of_whole_passes(self, seen: SchedulerSeen, end: int, allowed: float) -> Verdict | None:
        """A schedule is made for whole passes, and each of three or more is left at the same batch."""
        if self._shortened or self._restored or not self.monitor.complete or self._epochs < 3 or len(self._extents) > 1:
            return None
        batches, planned = next(iter(self._extents))
        if planned is None or batches >= planned:
            return None
        # The last batch may have been fetched for nothing.
        used = next((n for n in (batches, batches - 1) if n and abs(end - seen.planned * planned / n) <= allowed), None)
        if used is None:
            return None
        made = f"it is made for {end} steps, of epochs of {planned} batches, and each is left after {used}"
        return Verdict(Fault.WRONG_LENGTH, seen, self.monitor.updates_made, f"{seen.name}: {made}")

    def _allowed(self, seen: SchedulerSeen) -> float:
        """Steps by which a schedule may be shorter or longer than the training."""
        return max(1 + self._epochs, TOLERANCE * seen.planned)

    def _may_end_with(self, seen: SchedulerSeen, end: int) -> bool:
        """Whether a training may end after this number of steps, though whole passes would make more."""
        if not self._shortened or seen.steps > end + max(1 + self._epochs, self._batches):
            return False
        counts_them = self._epochs > FEWEST_STEPS and seen.steps >= end
        return self._may_be_left or self._cut or counts_them

    def _too_short(self, seen: SchedulerSeen, end: int) -> Verdict | None:
        observed = f"{seen.name}: it is over after {end} of {seen.planned_steps} steps"
        each = seen.steps / seen.updates if seen.updates else 1.0
        update = min(end + 1, self.monitor.updates_made)
        if end <= self._epochs + 1 and seen.planned >= 3 * end:
            return Verdict(Fault.WRONG_UNIT, seen, update, f"{observed}; it is stepped at every update")
        if each > 1.5:
            return Verdict(Fault.WRONG_UNIT, seen, update, f"{observed}; it is stepped {each:.3g} times an update")
        if self._goes_on_at_its_end(seen, end):
            return None
        return Verdict(Fault.WRONG_LENGTH, seen, update, observed)

    def _goes_on_at_its_end(self, seen: SchedulerSeen, end: int) -> bool:
        """Whether a schedule stays, from its end on, at a learning rate with which a training may go on."""
        if seen.rate is None or self._stops_at(seen) <= NEGLIGIBLE:
            return False
        marks = [seen.rate(end + round((seen.planned - end) * part / 5)) for part in range(6)]
        return all(math.isclose(mark, marks[0], rel_tol=1e-6) for mark in marks)

    def _too_long(self, seen: SchedulerSeen, end: int, allowed: float) -> Verdict | None:
        if self._restored:
            return None  # which part of the training this was is not known
        rate, made = self._stops_at(seen), self.monitor.updates_made
        update = min(end + 1, made)
        stops = f"it is made for {end} steps and gets {seen.planned_steps}, so it stops at {rate:.0%} of its peak"
        observed = f"{seen.name}: {stops}"
        if self._planned_updates > 3 and seen.planned <= self._epochs + 1 < self._planned_updates:
            return Verdict(Fault.WRONG_UNIT, seen, update, f"{observed}; it is stepped once an epoch")
        explained = any(
            factor > 1 and abs(end - factor * seen.planned) <= max(factor * allowed, 0.05 * end)
            for factor in (self._accumulated, self._rows, self._accumulated * self._rows)
        )
        if explained or not self._between:
            return Verdict(Fault.WRONG_LENGTH, seen, update, observed)
        return Verdict(Fault.TOO_LONG_UNLESS_STOPPED, seen, made, stops) if rate > MAKES_A_DIFFERENCE else None

    def _stops_at(self, seen: SchedulerSeen) -> float:
        """The learning rate after the last step, as a share of its peak."""
        if seen.rate is None:
            return math.nan
        peak = max(seen.rate(step) for step in range(1 + min(1000, round(seen.planned))))
        return seen.rate(round(seen.planned)) / peak if peak else 0.0

    def _squared(self, seen: SchedulerSeen) -> Verdict | None:
        """The greatest factor of a function must not be the very rate that it is multiplied with."""
        if seen.rate is None or seen.base is None or not 0 < seen.base < RATE:
            return None
        steps = range(min(max(seen.steps, round(seen.planned)), MOST_STEPS) + 1)
        rates = [seen.rate(step) for step in steps]
        factor = max(rates) / seen.base
        still_rises = rates[0] < rates[-1] == max(rates)  # a trial within a warmup, whose peak is not known
        if still_rises or not math.isclose(factor, seen.base, rel_tol=AS_GIVEN):
            return None
        observed = f"{seen.name} multiplies it with up to {factor:.3g}: it is at most {factor * seen.base:.3g}"
        return Verdict(Fault.SQUARED, seen, 1, observed)

    def _negligible(self, seen: SchedulerSeen) -> Verdict | None:
        """A schedule without an end must not come to nothing long before the training is over."""
        if seen.rate is None or not self._known or self._may_be_left or seen.planned < 3:
            return None
        planned = min(round(seen.planned), MOST_STEPS)
        marks = [seen.rate(round(planned * part / 20)) for part in range(21)]
        peak = max([*marks, seen.rate(0)])
        idle = sum(rate <= NEGLIGIBLE * peak for rate in marks)
        if peak <= 0 or idle <= IDLE:
            return None
        observed = f"{seen.name}: for {idle / 21:.0%} of the updates it is below {NEGLIGIBLE:.0e} of its peak"
        return Verdict(Fault.NEGLIGIBLE_TOO_SOON, seen, self.monitor.updates_made, observed)
