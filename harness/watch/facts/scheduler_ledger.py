"""Scheduler ledger: how each learning rate scheduler was stepped, and what the unshortened run makes of that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from harness.torch_objects import held_by_any, share_groups
from harness.watch.events import (
    End,
    Fact,
    Load,
    NotKnown,
    Pass,
    PassEnds,
    SchedulerStep,
    SkippedStep,
    StepBegins,
    TrainerMade,
)
from harness.watch.facts.rhythm import Rhythm
from harness.watch.facts.schedules import NotComputable, schedule_of
from harness.watch.recogniser import Recogniser

NOT_AHEAD = "no schedule that can be computed ahead"
"""Why a check of a schedule's length did not look, where there is one without a known end."""

TOO_SHORT = "too few steps of the schedule for its epochs to tell another length from it"
"""Why a check of a schedule's length did not look, where there is one with an end."""

NEGLIGIBLE = 1e-4
"""Largest share of its peak at which a learning rate changes nothing any more. At a peak of 1e-3, which is high for
fine-tuning, it is 1e-7, and changes the last digit of a float32 weight."""

TOLERANCE = 0.02
"""Largest share of its steps by which a schedule may be shorter or longer than the training. Rounding in the planning
of steps is below it."""

MOST_LOOKED_AT = 1000
"""First steps among which a schedule's peak is looked for: a warmup is over by then."""

FEWEST_IDLE = 8
"""Steps in a row of a scheduler whose optimizer has been replaced. A few happen where the two change over."""

FEWEST_STEPS = 8
"""Smallest number of steps after which a rate that only rose counts as one that never gets to its peak. A shorter
training may be a trial of a long one's warmup. As many updates without its optimizer show that the training went on to
another one."""


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
    """Rhythm of its steps in the pass at hand."""
    stands_at: int = 0
    """Value of its own count."""
    before: list[int] = field(default_factory=list)
    """How often it had been moved on at each of the first updates, those that a GradScaler left out included."""
    where: str | None = None
    """Place of its latest step."""
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
    """Number of its latest steps, in a row, before each of which another optimizer made updates and its own none."""
    takes_turns: bool = False
    """Whether its optimizer has made updates again after that."""
    replaced: bool = False
    """Whether another optimizer has updated its optimizer's parameters meanwhile."""

    @property
    def planned_steps(self) -> str:
        return f"{'about ' if self.is_estimate else ''}{self.planned:.0f}"

    def not_known(self, problem: object) -> str:
        """What is noted where its rates, or its end, cannot be computed."""
        made = f" ({self.made})" if self.made else ""
        return f"whether {self.name}{made} ends with the training is not known: {problem}"

    def update_comes(self) -> None:
        if len(self.before) < 2:
            self.before.append(self.moved)

    @property
    def stepped_first(self) -> bool:
        return self.before[:1] == [1] and (len(self.before) == 1 or self.before[1] in (1, 2))

    @property
    def expected_length(self) -> str:
        return f"as many scheduler steps as the schedule was made for ({self.end})"

    @property
    def pass_more(self) -> dict[str, Any]:
        """What is said of a schedule that lacks the steps of one pass over the data."""
        return {
            "expected": f"as many passes over the data as the schedule was made for ({self.end} steps)",
            "observed": f"{self.name}: the schedule is over after {self.end} of {self.planned_steps} steps, one pass "
            "too early",
            "hint": f"Make the schedule for {self.planned_steps} steps, or train for one pass less.",
        }


@dataclass(eq=False)
class ScheduledRun:
    """What a run's schedules are compared with."""

    optimizers: int = 0
    """Optimizers that made steps."""
    planned_updates: float = 0.0
    """Updates that the unshortened run makes."""
    epochs: int = 0
    extents: set[tuple[int, int | None]] = field(default_factory=set)
    """Batches of the passes that trained, and how many each would have had."""
    known: bool = True
    """Whether every pass that trained was gone through to its end."""
    cut: bool = False
    """Whether the latest pass that trained was left before its end."""
    left_after: tuple[int, int | None] | None = None
    """After how many batches it was, and of how many."""
    shortened: bool = False
    """Whether any was shortened."""
    evaluated_between: bool = False
    """Whether an evaluation came between two passes that trained."""
    restored: bool = False
    """Whether a scheduler's state was loaded."""
    accumulated: int = 1
    """Batches for an update, at most."""
    rows: int = 1
    """Rows in a batch, at most."""
    may_be_left: bool = False
    """Whether a training that was not shortened might end in the middle of a pass."""
    batches: int = 0
    """Batches of a shortened pass, at most."""
    stepped_at: set[str] = field(default_factory=set)
    """The lines of the script at which optimizers made steps."""
    files: Collection[str] = ()
    """The user's files that ran, where there was no pass."""
    lengths_are_seen: bool = True
    """Whether each end that can be compared is long enough for half or twice its length to be told from it."""


class ScheduleOver(Fact):
    """A run is over in which there was a learning rate scheduler. ``where`` is where it was made."""

    needs = "learning rate scheduler"
    of_run = True
    seen: SchedulerSeen
    training: ScheduledRun = field(default_factory=ScheduledRun)
    is_one_of_two: bool = False
    """Whether another one like it drives the same optimizer, and an optimizer that makes steps has none."""
    asked: tuple[str, float, str | None] | None = None
    """The warmup that a Trainer was asked for: the argument, its value, and the user's line that says it."""

    @property
    def drives(self) -> bool:
        """Whether its optimizer made steps."""
        return self.seen.optimizer is not None

    @property
    def end(self) -> int | None:
        """The step with which it ends, where it was stepped."""
        return self.seen.end if self.seen.steps else None

    @property
    def has_rates(self) -> bool:
        """Whether its learning rates are known for the whole training."""
        return self.training.known and self.seen.rate is not None and self.seen.steps > 0

    def rate(self, step: int) -> float:
        """The learning rate after so many steps.

        Raises:
            NotKnown: the scheduler's own function fails, or is not asked.
        """
        assert self.seen.rate is not None
        try:
            return self.seen.rate(step)
        except NotComputable as error:
            raise NotKnown(self.seen.not_known(error)) from error

    @property
    def stops_early(self) -> str:
        """How a schedule ends that is longer than the training."""
        ahead = max(self.seen.planned, self.seen.end or 0)
        rises = self.stops_at(ahead) < self.stops_at()
        at = f"the learning rate {'still rises' if rises else 'stops'} at {self.stops_at(ahead):.0%} of its peak"
        says = f"the schedule is made for {self.seen.end} steps but gets only {self.seen.planned_steps}, so {at}"
        batches, planned = self.training.left_after or (0, None)
        if self.training.epochs > 1 and planned and batches < planned:  # by an exception that is caught, perhaps
            says += f"; the last pass over the data was left after {batches} of {planned} batches"
        return says

    def stops_at(self, ahead: float = 0) -> float:
        """The learning rate after the last step, as a share of its peak up to then, or up to a step ahead."""
        if self.seen.rate is None:
            return math.nan
        last = round(max(ahead, self.seen.planned))
        peak = max(self.rate(step) for step in range(1 + min(MOST_LOOKED_AT, last)))
        return self.rate(round(self.seen.planned)) / peak if peak else 0.0

    def is_over_early(self) -> bool:
        """Whether the training goes on after the schedule's end."""
        if self.seen.end is None or not self.seen.steps or self.seen.planned <= self.seen.end + self.allowed():
            return False
        return not self._may_end_with(self.seen.end)

    def makes_a_pass_more(self) -> bool:
        """Whether a schedule is over before the training by the steps of one pass over the data."""
        over = self.seen.planned - (self.seen.end or 0)
        of_a_pass: list[float] = [planned or batches for batches, planned in self.training.extents]
        if self.training.epochs > 1:
            of_a_pass.append(self.seen.planned / self.training.epochs)
        return any(abs(over - each) <= 1 for each in of_a_pass)

    def outlasts_the_training(self) -> bool:
        """Whether a schedule has steps left when the training is over."""
        return self.training.known and self.has_steps_left()

    def has_steps_left(self) -> bool:
        """The same, where it is not known that every pass was gone through to its end."""
        return self.seen.end is not None and self.seen.planned < self.seen.end - self.allowed()

    def is_flat(self) -> bool:
        """Whether the learning rate is the same from the first step to the last."""
        if self.seen.rate is None:
            return False
        last = max(2, self.seen.updates, round(self.training.planned_updates))
        return math.isclose(self.rate(1), self.rate(last), rel_tol=1e-6)

    def allowed(self) -> float:
        """Steps by which a schedule may be shorter or longer than the training."""
        return max(1 + self.training.epochs, TOLERANCE * self.seen.planned)

    def counts_other_units(self) -> bool:
        """Whether a schedule is longer than the training by as many times as an update has batches or rows."""
        end, allowed = self.seen.end or 0, self.allowed()
        batches, rows = self.training.accumulated, self.training.rows
        return any(
            factor > 1 and abs(end - factor * self.seen.planned) <= max(factor * allowed, 0.05 * end)
            for factor in (batches, rows, batches * rows)
        )

    def _may_end_with(self, end: int) -> bool:
        """Whether a training may end after this number of steps, though whole passes would make more."""
        if not self.training.shortened or self.seen.steps > end + max(1 + self.training.epochs, self.training.batches):
            return False
        counts_them = self.training.epochs > FEWEST_STEPS and self.seen.steps >= end
        return self.training.may_be_left or self.training.cut or counts_them


class SchedulerLedger(Recogniser):
    """All schedulers, and what the unshortened run makes of their steps."""

    makes = (ScheduleOver,)

    def begin(self) -> None:
        self._seen: WeakKeyDictionary[Any, SchedulerSeen] = WeakKeyDictionary()
        self.all_seen: list[SchedulerSeen] = []
        """Schedulers, those that are gone included."""
        self.training = ScheduledRun()
        self._updates = Rhythm()
        """Updates in the pass at hand."""
        self._tested = False
        """Whether one came since the latest pass that trained."""
        self._numbers: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        """Numbers of the optimizers that are alive."""
        self._asked: tuple[str, float] | None = None
        """The warmup that a Trainer was asked for, and its value."""

    def seen(self, scheduler: Any) -> SchedulerSeen | None:
        """What is known of a scheduler; None where it is a part of another."""
        return self._seen.get(scheduler)

    @property
    def rounding(self) -> int:
        """Updates by which a plan may be wrong that rounds in each epoch; none are where passes were shortened."""
        return 0 if self.training.shortened else 1 + self.training.epochs

    # What happens

    def on_trainer_made(self, event: TrainerMade) -> None:
        given = ((name, getattr(event.trainer.args, name, 0)) for name in ("warmup_steps", "warmup_ratio"))
        self._asked = next((each for each in given if each[1]), None)
        self.training.may_be_left = self.training.may_be_left or getattr(event.trainer.args, "max_steps", 0) > 0

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
                self.monitor.note(seen.not_known(schedule.problem))
            if isinstance(scheduler, LambdaLR):
                seen.base = float(scheduler.base_lrs[0])
            self._seen[scheduler] = seen
            self.all_seen.append(seen)
        return seen

    def on_step_begins(self, event: StepBegins) -> None:
        optimizer = event.optimizer
        if optimizer not in self._numbers:
            self.training.optimizers += 1
            self._numbers[optimizer] = self.training.optimizers
            self.monitor.find_schedulers()
        if (of := self._pass_at_hand()) is not None:
            self._updates.beat(of.batches)
        if event.where is not None:
            self.training.stepped_at.add(event.where)
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
                if id(scheduler) not in inner and self._may_be_of_this_loop(scheduler, optimizer):
                    self._of(scheduler)
        seen = list(self._seen.items())
        return [each for scheduler, each in seen if share_groups(getattr(scheduler, "optimizer", None), optimizer)]

    def _may_be_of_this_loop(self, scheduler: Any, optimizer: Optimizer) -> bool:
        """One that was there before the watch may be another loop's, and is asked for its plan only if it is not."""
        made_here = self.monitor.schedulers.get(scheduler) is not None
        return made_here or share_groups(getattr(scheduler, "optimizer", None), optimizer)

    def on_pass_ends(self, event: PassEnds) -> None:
        ended, training = event.of, self.training
        if not ended.trains:
            self._tested = True
            return
        training.evaluated_between = training.evaluated_between or (self._tested and training.epochs > 0)
        self._tested = False
        training.epochs += 1
        training.known = training.known and not training.cut and not (ended.shortened and ended.planned is None)
        training.cut = not ended.exhausted and not ended.shortened
        training.left_after = (ended.batches, ended.planned) if training.cut else None
        if len(training.extents) < 2:
            training.extents.add((ended.batches, ended.planned))
        training.shortened = training.shortened or ended.shortened
        for seen in self.all_seen:
            seen.planned += seen.rhythm.whole(ended)
            seen.is_estimate = seen.is_estimate or seen.rhythm.is_estimate or ended.may_be_left
            seen.rhythm.begin_again()
        self._updates.total = ended.updates
        training.planned_updates += self._updates.whole(ended)
        self._updates.begin_again()
        training.accumulated = max(training.accumulated, self._updates.period)
        training.may_be_left = training.may_be_left or ended.may_be_left
        training.batches = max(training.batches, ended.batches if ended.shortened else 0)
        training.rows = max(training.rows, round(ended.rows / ended.batches) if ended.batches else 1)

    def on_load(self, event: Load) -> None:
        """A schedule that is resumed has been stepped before."""
        if "last_epoch" in event.state and hasattr(event.into, "last_epoch"):
            self.training.restored = True
            seen = self._of(event.into)
            seen.planned = float(event.state["last_epoch"])
            seen.stands_at = int(event.state["last_epoch"])

    def on_end(self, event: End) -> None:
        training = self.training
        training.known = training.known and event.at.complete and not (training.cut and training.shortened)
        if self.all_seen and not training.epochs:  # how long its epochs are is not known
            training.files = self.monitor.locator.users_files()
        # One that was there before the watch, and that this loop neither steps nor goes by, is another loop's.
        mine = [seen for seen in self.all_seen if seen.made is not None or seen.steps or seen.optimizer is not None]
        facts = [ScheduleOver(seen=seen, training=training, where=seen.made) for seen in mine]
        with_end = [fact for fact in facts if fact.end is not None]
        training.lengths_are_seen = all(2 * fact.allowed() <= fact.seen.planned for fact in with_end)
        pair = self._one_of_two()
        asked = None if self._asked is None else (*self._asked, self.monitor.locator.argument(self._asked[0]))
        for fact in facts:
            self.tell(replace(fact, is_one_of_two=fact.seen is pair, asked=asked))

    def _one_of_two(self) -> SchedulerSeen | None:
        """Two alike on one optimizer while another has none were meant for one each; others are chained."""
        stepped = [seen for seen in self.all_seen if seen.optimizer is not None and seen.steps]
        if self.training.optimizers <= len({seen.optimizer for seen in stepped}):
            return None
        pairs = itertools.combinations(stepped, 2)
        return next((b for a, b in pairs if a.optimizer == b.optimizer and a.settings == b.settings), None)
