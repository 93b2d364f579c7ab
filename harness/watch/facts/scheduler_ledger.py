"""Scheduler ledger: how each learning rate scheduler was stepped, and what the unshortened run makes of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from harness.torch_objects import held_by_any, share_groups
from harness.watch.bus import Recogniser
from harness.watch.events import End, Load, Pass, PassEnds, SchedulerStep, SkippedStep, StepBegins, TrainerMade
from harness.watch.facts.rhythm import Rhythm
from harness.watch.facts.schedules import NotComputable, schedule_of

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

Observed = TypeVar("Observed")

NO_SCHEDULER = "no learning rate scheduler"
"""Why a check of schedules did not look, whatever else it needs."""

TOO_SHORT = "too few steps of the schedule for its epochs to tell another length from it"
"""Why a check of a schedule's length did not look, where there is one with an end."""

NEGLIGIBLE = 1e-4
"""Largest share of its peak at which a learning rate changes nothing any more. At a peak of 1e-3, which is high for
fine-tuning, it is 1e-7, and changes the last digit of a float32 weight. Neither half nor double of it changes a verdict
of the corpus."""

TOLERANCE = 0.02
"""Largest share of its steps by which a schedule may be shorter or longer than the training. Rounding in the planning
of steps is below it. Neither half nor double of it changes a verdict of the corpus."""

MOST_LOOKED_AT = 1000
"""First steps among which a schedule's peak is looked for: a warmup is over by then."""

FEWEST_IDLE = 8
"""Steps in a row of a scheduler whose optimizer has been replaced. A few happen where the two change over. Neither half
nor double of it changes a verdict of the corpus."""

FEWEST_STEPS = 8
"""Smallest number of steps after which a rate that only rose counts as one that never gets to its peak. A shorter
training may be a trial of a long one's warmup. As many updates without its optimizer show that the training went on to
another one. Neither half nor double of it changes a verdict of the corpus."""


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

    @property
    def expected_length(self) -> str:
        return f"as many scheduler steps as the schedule was made for ({self.end})"

    @property
    def pass_more(self) -> dict[str, str]:
        """What is said of a schedule that lacks the steps of one pass over the data."""
        return {
            "expected": f"as many passes over the data as the schedule was made for ({self.end} steps)",
            "observed": f"{self.name}: it is over after {self.end} of {self.planned_steps} steps, one pass too early",
            "hint": f"Make the schedule for {self.planned_steps} steps, or make one pass less.",
        }

    @property
    def stops_early(self) -> str:
        """How a schedule ends that is longer than the training."""
        ahead = max(self.planned, self.end or 0)
        rises = self.stops_at(ahead) < self.stops_at()
        at = f"it {'still rises' if rises else 'stops'} at {self.stops_at(ahead):.0%} of its peak"
        return f"it is made for {self.end} steps and gets {self.planned_steps}, so {at}"

    def stops_at(self, ahead: float = 0) -> float:
        """The learning rate after the last step, as a share of its peak up to then, or up to a step ahead."""
        if self.rate is None:
            return math.nan
        last = round(max(ahead, self.planned))
        peak = max(self.rate(step) for step in range(1 + min(MOST_LOOKED_AT, last)))
        return self.rate(round(self.planned)) / peak if peak else 0.0


class SchedulerLedger(Recogniser):
    """All schedulers, and what the unshortened run makes of their steps; whole when checks are told of the end."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._seen: WeakKeyDictionary[Any, SchedulerSeen] = WeakKeyDictionary()
        self.all_seen: list[SchedulerSeen] = []
        """Those that are gone included."""
        self.planned_updates = 0.0
        """Updates that the unshortened run makes."""
        self._updates = Rhythm()
        """Updates in the pass at hand."""
        self.epochs = 0
        self.extents: set[tuple[int, int | None]] = set()
        """Batches of the passes that trained, and how many each would have had."""
        self.known = True
        """Whether every pass that trained was gone through to its end."""
        self.cut = self.shortened = False
        """Whether the latest pass that trained was left before its end; whether any was shortened."""
        self.evaluated_between = False
        """Whether an evaluation came between two passes that trained."""
        self._tested = False
        """Whether one came since the latest pass that trained."""
        self.restored = False
        """Whether a scheduler's state was loaded."""
        self.accumulated = 1
        """Batches for an update, at most."""
        self.rows = 1
        """Rows in a batch, at most."""
        self.may_be_left = False
        """Whether a training that was not shortened might end in the middle of a pass."""
        self.batches = 0
        """Batches of a shortened pass, at most."""
        self.stepping = 0
        """Optimizers that made steps."""
        self.stepped_at: set[str] = set()
        """The lines of the script at which optimizers made steps."""
        self._numbers: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        """Of those that are alive."""

    @property
    def any_seen(self) -> bool:
        """Whether there is a scheduler at all."""
        return bool(self.all_seen)

    @property
    def any_with_end(self) -> bool:
        """Whether one's end can be compared with the training's."""
        return self.known and any(seen.end is not None and seen.steps for seen in self.all_seen)

    @property
    def lengths_are_seen(self) -> bool:
        """Whether each end that can be compared is long enough for half or twice its length to be told from it."""
        with_end = [seen for seen in self.all_seen if seen.end is not None and seen.steps]
        return self.any_with_end and all(2 * self.allowed(seen) <= seen.planned for seen in with_end)

    @property
    def any_with_rates(self) -> bool:
        """Whether one's learning rates are known for the whole training."""
        return self.known and any(seen.rate is not None and seen.steps for seen in self.all_seen)

    @property
    def driving(self) -> list[SchedulerSeen]:
        """Those whose optimizers made steps."""
        return [seen for seen in self.all_seen if seen.optimizer is not None]

    def seen(self, scheduler: Any) -> SchedulerSeen | None:
        """What is known of a scheduler; None where it is a part of another."""
        return self._seen.get(scheduler)

    def where_observed(
        self, judge: Callable[[SchedulerSeen], Observed | None]
    ) -> Iterator[tuple[SchedulerSeen, Observed]]:
        """Those that drive an optimizer and of which the judge has something to say, and what.

        One whose learning rates the script's own function does not give is passed over with a note.
        """
        for seen in self.driving:
            try:
                observed = judge(seen)
            except NotComputable as error:
                self._cannot_compute(seen, error)
            else:
                if observed is not None:
                    yield seen, observed

    def is_over_early(self, seen: SchedulerSeen) -> bool:
        """Whether the training goes on after the schedule's end; asked at the end, as what follows."""
        if seen.end is None or not seen.steps or seen.planned <= seen.end + self.allowed(seen):
            return False
        return not self._may_end_with(seen, seen.end)

    def makes_a_pass_more(self, seen: SchedulerSeen) -> bool:
        """Whether a schedule is over before the training by the steps of one pass over the data."""
        over = seen.planned - (seen.end or 0)
        of_a_pass: list[float] = [planned or batches for batches, planned in self.extents]
        if self.epochs > 1:
            of_a_pass.append(seen.planned / self.epochs)
        return any(abs(over - each) <= 1 for each in of_a_pass)

    def outlasts_the_training(self, seen: SchedulerSeen) -> bool:
        """Whether a schedule has steps left when the training is over."""
        return self.known and self.has_steps_left(seen)

    def has_steps_left(self, seen: SchedulerSeen) -> bool:
        """The same, where it is not known that every pass was gone through to its end."""
        return seen.end is not None and seen.planned < seen.end - self.allowed(seen)

    def is_flat(self, seen: SchedulerSeen) -> bool:
        """Whether the learning rate is the same from the first step to the last."""
        if seen.rate is None:
            return False
        last = max(2, seen.updates, round(self.planned_updates))
        return math.isclose(seen.rate(1), seen.rate(last), rel_tol=1e-6)

    def allowed(self, seen: SchedulerSeen) -> float:
        """Steps by which a schedule may be shorter or longer than the training."""
        return max(1 + self.epochs, TOLERANCE * seen.planned)

    def counts_other_units(self, seen: SchedulerSeen) -> bool:
        """Whether a schedule is longer than the training by as many times as an update has batches or rows."""
        end, allowed = seen.end or 0, self.allowed(seen)
        return any(
            factor > 1 and abs(end - factor * seen.planned) <= max(factor * allowed, 0.05 * end)
            for factor in (self.accumulated, self.rows, self.accumulated * self.rows)
        )

    def _may_end_with(self, seen: SchedulerSeen, end: int) -> bool:
        """Whether a training may end after this number of steps, though whole passes would make more."""
        if not self.shortened or seen.steps > end + max(1 + self.epochs, self.batches):
            return False
        counts_them = self.epochs > FEWEST_STEPS and seen.steps >= end
        return self.may_be_left or self.cut or counts_them

    @property
    def rounding(self) -> int:
        """Updates by which a plan may be wrong that rounds in each epoch; none are where passes were shortened."""
        return 0 if self.shortened else 1 + self.epochs

    # What happens

    def on_trainer_made(self, event: TrainerMade) -> None:
        self.may_be_left = self.may_be_left or getattr(event.trainer.args, "max_steps", 0) > 0

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
            self.all_seen.append(seen)
        return seen

    def _cannot_compute(self, seen: SchedulerSeen, problem: object) -> None:
        made = f" ({seen.made})" if seen.made else ""
        self.monitor.note(f"whether {seen.name}{made} ends with the training is not known: {problem}")

    def on_step_begins(self, event: StepBegins) -> None:
        optimizer = event.optimizer
        if optimizer not in self._numbers:
            self.stepping += 1
            self._numbers[optimizer] = self.stepping
            self.monitor.find_schedulers()
        if (of := self._pass_at_hand()) is not None:
            self._updates.beat(of.batches)
        if event.where is not None:
            self.stepped_at.add(event.where)
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
        self.evaluated_between = self.evaluated_between or (self._tested and self.epochs > 0)
        self._tested = False
        self.epochs += 1
        self.known = self.known and not self.cut and not (ended.shortened and ended.planned is None)
        self.cut = not ended.exhausted and not ended.shortened
        if len(self.extents) < 2:
            self.extents.add((ended.batches, ended.planned))
        self.shortened = self.shortened or ended.shortened
        for seen in self.all_seen:
            seen.planned += seen.rhythm.whole(ended)
            seen.is_estimate = seen.is_estimate or seen.rhythm.is_estimate or ended.may_be_left
            seen.rhythm.begin_again()
        self._updates.total = ended.updates
        self.planned_updates += self._updates.whole(ended)
        self._updates.begin_again()
        self.accumulated = max(self.accumulated, self._updates.period)
        self.may_be_left = self.may_be_left or ended.may_be_left
        self.batches = max(self.batches, ended.batches if ended.shortened else 0)
        self.rows = max(self.rows, round(ended.rows / ended.batches) if ended.batches else 1)

    def on_load(self, event: Load) -> None:
        """A schedule that is resumed has been stepped before."""
        if "last_epoch" in event.state and hasattr(event.into, "last_epoch"):
            self.restored = True
            seen = self._of(event.into)
            seen.planned = float(event.state["last_epoch"])
            seen.stands_at = int(event.state["last_epoch"])

    def on_end(self, event: End) -> None:
        self.known = self.known and self.monitor.complete and not (self.cut and self.shortened)
