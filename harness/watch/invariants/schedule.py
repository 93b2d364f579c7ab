"""Schedule: the learning rate's scheduler drives the optimizer in use, once an update or an epoch, and ends with it."""

from __future__ import annotations

import copy
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch.optim import Optimizer, lr_scheduler

from harness.watch.events_old import Loaded, Pass, Scheduled, Step
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import raw_optimizer

MOST = 100_000
"""So many steps of a schedule are computed at most."""

LITTLE = 1e-4
"""Of its peak: a learning rate that changes nothing any more."""


@dataclass(eq=False)
class Seen:
    """A scheduler, and how it was stepped."""

    name: str
    made: str | None
    factor: Callable[[int], float] | None
    """The learning rate of the first group after so many steps, for steps from the first on."""
    last: int | None
    """The step that the schedule was made to end with; None where it has no end."""
    steps: int = 0
    planned: float = 0.0
    """Steps that the unshortened run makes."""
    in_pass: int = 0
    stands_at: int = 0
    """Its own count."""
    """Steps of the optimizer when it was first stepped."""
    before: list[int] = field(default_factory=list)
    """How often it had been stepped at each of the first steps of the optimizer."""
    where: str | None = None
    drives: bool = False
    """Whether its optimizer made steps."""
    updates: int = 0
    """Steps of its optimizer."""
    of: ref[Optimizer] | None = None


class Schedule(Invariant):
    checks = (
        Statement(
            "schedule::steps-with-the-updates",
            "The scheduler is stepped once an update, or once an epoch, in the unit that its length is given in.",
        ),
        Statement("schedule::ends-with-the-training", "The schedule ends with the last update."),
        Statement("schedule::drives-the-optimizer", "The scheduler belongs to the optimizer that makes the updates."),
        Statement("schedule::after-the-update", "The scheduler is stepped after the optimizer."),
        Statement("schedule::lr-above-zero", "The learning rate is large enough to change something."),
        Statement("schedule::warmup-ends", "The learning rate gets to its peak before the training is over."),
        Statement("schedule::may-end-early", "The schedule ends with the last update.", severity="warning"),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.seen: WeakKeyDictionary[Any, Seen] = WeakKeyDictionary()
        self.all: list[Seen] = []
        self.planned_updates = 0.0
        """That the unshortened run makes."""
        self.epochs = 0
        self.known = True
        """Whether every pass that trained was gone through to its end."""
        self.cut = self.shortened = False
        """Whether the latest pass that trained was left before its end; whether any was shortened."""
        self.between = False
        """Whether an evaluation came between two passes that trained."""
        self.tested = False
        self.restored = False
        """Whether a scheduler's state was loaded."""
        self.accumulated = 1
        self.rows = 1
        self.stepping = 0
        """Optimizers that made steps."""
        self.zero: tuple[str | None, int] | None = None
        """Where and when the learning rate had been 0 for three updates."""
        self.zero_in_a_row: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()

    # What happens

    def scheduled(self, event: Scheduled) -> None:
        seen = self._of(event.scheduler)
        seen.steps += 1
        seen.where = event.where
        stands_at = getattr(event.scheduler, "last_epoch", seen.stands_at + 1)
        forward = max(0, min(1, stands_at - seen.stands_at))  # step(epoch) may leave it where it is
        seen.stands_at = stands_at
        if self.observer.batch is not None and not self._over():
            seen.in_pass += forward
        else:
            seen.planned += forward

    def _over(self) -> bool:
        """Whether the pass at hand has ended."""
        batch = self.observer.batch
        return batch is None or batch.of.over

    def _of(self, scheduler: Any) -> Seen:
        seen = self.seen.get(scheduler)
        if seen is None:
            name, made = type(scheduler).__name__, self.observer.schedulers.get(scheduler)
            factor, last = _formula(scheduler)
            seen = Seen(name, made, factor, last, stands_at=getattr(scheduler, "last_epoch", 0))
            self.seen[scheduler] = seen
            self.all.append(seen)
        return seen

    def step_begins(self, event: Step) -> None:
        optimizer = event.optimizer
        self.stepping += event.number == 1
        if event.number == 1:
            self.observer.schedulers_there()
        there = list(self.observer.schedulers)
        if len(there) > len(self.seen):
            inner = {id(each) for scheduler in there for each in getattr(scheduler, "_schedulers", ())}
            for scheduler in there:
                if id(scheduler) not in inner:
                    self._of(scheduler)
        for scheduler, seen in list(self.seen.items()):
            if raw_optimizer(getattr(scheduler, "optimizer", None)) is not optimizer:
                continue
            seen.drives, seen.of = True, seen.of or ref(optimizer)
            seen.updates += 1
            if len(seen.before) < 3:
                seen.before.append(seen.steps)
        lrs = [float(group["lr"]) for group in optimizer.param_groups if group.get("lr") is not None]
        zeros = 1 + self.zero_in_a_row.get(optimizer, 0) if max(lrs, default=1.0) <= 0 else 0
        self.zero_in_a_row[optimizer] = zeros
        if zeros == 3 and self.zero is None:
            self.zero = event.where, event.update

    def pass_ends(self, event: Pass) -> None:
        if not event.trains:
            self.tested = True
            return
        self.between = self.between or (self.tested and self.epochs > 0)
        self.tested = False
        self.epochs += 1
        stretch = 1.0
        if event.shortened and event.planned is not None and event.batches:
            stretch = event.planned / event.batches
        if event.shortened and event.planned is None:
            self.known = False
        self.known = self.known and not self.cut
        self.cut = not event.exhausted and not event.shortened
        self.shortened = self.shortened or event.shortened
        for seen in self.all:
            seen.planned += seen.in_pass if seen.in_pass <= 1 else round(seen.in_pass * stretch)
            seen.in_pass = 0
        self.planned_updates += event.updates * stretch
        if event.updates:
            self.accumulated = max(self.accumulated, round(event.batches / event.updates))
        self.rows = max(self.rows, round(event.rows / event.batches) if event.batches else 1)

    def loaded(self, event: Loaded) -> None:
        """A schedule that is resumed has been stepped before."""
        if "last_epoch" in event.state and hasattr(event.into, "last_epoch"):
            self.restored = True
            seen = self._of(event.into)
            seen.planned = float(event.state["last_epoch"])
            seen.stands_at = int(event.state["last_epoch"])

    # At the end

    def ends(self, _: None) -> None:
        self.known = self.known and self.observer.complete and not (self.cut and self.shortened)
        for seen in self.all:
            if not seen.drives:
                kept = "effect::optimizer-kept" not in self.observer.findings
                if seen.steps > 1 and self.observer.made and kept:
                    self._drives_another(seen)
                continue
            if self._early(seen):
                continue
            if seen.name == "ReduceLROnPlateau":
                continue
            if not seen.steps:
                if self.epochs and self.known and not self._flat(seen):
                    self._never(seen)
            elif not self._rises_only(seen) and not self._ends_right(seen):
                self._enough(seen)
        self._two_on_one()
        others = {statement.id for statement in self.checks} & set(self.observer.findings)
        if self.zero is not None and not others:
            self.found(
                "schedule::lr-above-zero",
                expected="a learning rate above 0",
                observed="it is 0 for three updates in a row",
                hint="Look at the optimizer's lr, at the warmup, and at what the scheduler multiplies it with.",
                where=self.zero[0],
                update=self.zero[1],
            )

    def _two_on_one(self) -> None:
        """Two schedulers on one optimizer while another has none were meant for one each."""
        stepped = [seen for seen in self.all if seen.drives and seen.steps]
        counts = Counter(seen.of for seen in stepped)
        double = next((seen for seen in reversed(stepped) if counts[seen.of] > 1), None)
        if double is not None and self.stepping > len(counts):
            self._drives_another(double, "and another scheduler share one optimizer, while another has none")

    def _early(self, seen: Seen) -> bool:
        if seen.before[:1] != [1] or (len(seen.before) > 1 and seen.before[1] not in (1, 2)):
            return False
        self.found(
            "schedule::after-the-update",
            expected="optimizer.step() before scheduler.step()",
            observed="the scheduler was stepped before the first update, which skips the schedule's first value",
            hint="Call scheduler.step() after optimizer.step().",
            where=seen.where,
            update=1,
        )
        return True

    def _flat(self, seen: Seen) -> bool:
        if seen.factor is None:
            return False
        return math.isclose(seen.factor(1), seen.factor(max(2, round(self.planned_updates))), rel_tol=1e-6)

    def _never(self, seen: Seen) -> None:
        self.found(
            "schedule::steps-with-the-updates",
            expected="scheduler.step() after each update, or each epoch",
            observed=f"{seen.name} was made and never stepped, in {seen.updates} updates",
            hint="Call scheduler.step() after optimizer.step().",
            where=seen.made,
            update=1,
        )

    def _drives_another(
        self, seen: Seen, how: str = "changes the learning rate of an optimizer that makes none"
    ) -> None:
        self.found(
            "schedule::drives-the-optimizer",
            expected="a scheduler of the optimizer that makes the updates",
            observed=f"{seen.name} {how}",
            hint="Make the scheduler with the optimizer that is stepped, after it is final.",
            where=seen.made,
            update=1,
        )

    def _rises_only(self, seen: Seen) -> bool:
        """Whether the training is over before the warmup is."""
        if seen.factor is None or not self.known or seen.planned < 8 or seen.name == "CyclicLR" or self.restored:
            return False
        planned = round(seen.planned)
        marks = [seen.factor(round((planned - 1) * part / 10)) for part in range(11)]
        if not all(one < other for one, other in itertools.pairwise(marks)):
            return False
        later = max(seen.factor(round(planned * times)) for times in (1.5, 2, 4, 8, 16))
        self.found(
            "schedule::warmup-ends",
            expected="a warmup that is over before the training is",
            observed=f"{seen.name}: after all {planned} steps the learning rate still rises"
            + (f"; it gets to {marks[-1] / later:.0%} of its peak" if later > marks[-1] else ""),
            hint="Give the warmup in steps, as a small part of all updates.",
            where=seen.made,
            update=self.observer.updates_made,
        )
        return True

    def _ends_right(self, seen: Seen) -> bool:
        """Whether the schedule's end is compared with the training's, or found wrong; False where it has no end."""
        if seen.last is None:
            return False
        last, planned = seen.last, seen.planned
        allowed = max(1 + self.epochs, 0.02 * planned)
        each = seen.steps / seen.updates if seen.updates else 1.0
        if planned > last + allowed:
            in_epochs = last <= self.epochs + 1 and planned >= 3 * last
            if each > 1.5 or in_epochs:
                unit = "it is stepped at every update" if in_epochs else f"it is stepped {each:.3g} times an update"
                check = "schedule::steps-with-the-updates"
            else:
                unit, check = "", "schedule::ends-with-the-training"
            self._wrong_end(seen, check, f"it is over after {last} of {planned:.0f} steps", unit)
            return True
        if planned >= last - allowed or not self.known:
            return True
        rate = self._rate_at(seen, planned)
        observed = f"it is made for {last} steps and gets {planned:.0f}, so it stops at {rate:.0%} of its peak"
        by_epoch = self.planned_updates > 3 and planned <= self.epochs + 1 < self.planned_updates
        explained = any(
            factor > 1 and abs(last - factor * planned) <= max(factor * allowed, 0.05 * last)
            for factor in (self.accumulated, self.rows, self.accumulated * self.rows)
        )
        if self.restored:
            return True  # which part of the training this was is not known
        if by_epoch:
            self._wrong_end(seen, "schedule::steps-with-the-updates", observed, "it is stepped once an epoch")
        elif explained or not self.between:
            self._wrong_end(seen, "schedule::ends-with-the-training", observed, "")
        elif rate > 0.05:
            self.found(
                "schedule::may-end-early",
                expected=f"a schedule of {planned:.0f} steps",
                observed=observed,
                hint="Right where the training stops early; otherwise give the scheduler epochs * updates an epoch.",
                where=seen.made,
                update=self.observer.updates_made,
            )
        return True

    def _rate_at(self, seen: Seen, planned: float) -> float:
        if seen.factor is None:
            return math.nan
        peak = max(seen.factor(step) for step in range(1 + min(1000, round(planned))))
        return seen.factor(round(planned)) / peak if peak else 0.0

    def _wrong_end(self, seen: Seen, check: str, observed: str, unit: str) -> None:
        self.found(
            check,
            expected=f"as many scheduler steps as the schedule was made for ({seen.last})",
            observed=f"{seen.name}: {observed}" + (f"; {unit}" if unit else ""),
            hint="Make it for epochs * ceil(batches an epoch / accumulated batches) steps, and step it once an update.",
            where=(seen.where if unit else seen.made) or seen.where or seen.made,
            update=self.observer.updates_made if seen.last is None else min(seen.last + 1, self.observer.updates_made),
        )

    def _enough(self, seen: Seen) -> None:
        """A schedule without an end must not come to nothing long before the training is over."""
        if seen.factor is None or not self.known or seen.planned < 3:
            return
        planned = min(round(seen.planned), MOST)
        marks = [seen.factor(round(planned * part / 20)) for part in range(21)]
        peak = max([*marks, seen.factor(0)])
        idle = sum(rate <= LITTLE * peak for rate in marks)
        if peak > 0 and idle > 6:
            self.found(
                "schedule::lr-above-zero",
                expected="a learning rate that lasts for the training",
                observed=f"{seen.name}: for {idle / 21:.0%} of the updates it is below {LITTLE:.0e} of its peak",
                hint="Step it once an epoch, or choose a slower decay.",
                where=seen.where,
                update=self.observer.updates_made,
            )


def _formula(scheduler: Any) -> tuple[Callable[[int], float] | None, int | None]:
    """The first group's learning rate by step, and the step with which the schedule ends."""
    if isinstance(scheduler, lr_scheduler.LambdaLR):
        base, function = float(scheduler.base_lrs[0]), scheduler.lr_lambdas[0]

        def rate(step: int) -> float:
            return base * float(function(step))

        return rate, _end(rate)
    if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        return None, None
    return _simulated(scheduler), _stated_end(scheduler)


def _end(rate: Callable[[int], float]) -> int | None:
    """The step from which a schedule that decays to its end stays as it is; None where it does not."""

    def settled(step: int) -> bool:
        return all(rate(step) == rate(later) for later in (step + 1, step + 2, 2 * step + 3, 10 * step + 1000))

    try:
        high = 1
        while not settled(high):
            high *= 2
            if high > 100 * MOST:
                return _touches_zero(rate)
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if settled(middle) else (middle, high)
        tail = [rate(step) for step in range(max(0, high - 6), high + 1)]
        peak = max(rate(round(high * part / 50)) for part in range(51))
        falls = all(one > other for one, other in itertools.pairwise(tail))
    except (ArithmeticError, ValueError, IndexError, KeyError, TypeError):
        return None
    return high if falls and tail[-1] <= 0.1 * peak else None


def _touches_zero(rate: Callable[[int], float]) -> int | None:
    """The step at which a schedule comes down to 0 before it rises again, as a cosine does."""
    peak = before = rate(0)
    for step in range(1, MOST):
        now = rate(step)
        if now <= 1e-9 * peak and before > now:
            return step
        peak, before = max(peak, now), now
    return None


def _stated_end(scheduler: Any) -> int | None:
    if isinstance(scheduler, lr_scheduler.SequentialLR):
        end = _stated_end(scheduler._schedulers[-1])
        return None if end is None else int(scheduler._milestones[-1]) + end
    if isinstance(scheduler, lr_scheduler.CosineAnnealingLR):
        return int(scheduler.T_max)
    if isinstance(scheduler, lr_scheduler.OneCycleLR):
        return int(scheduler.total_steps)
    if isinstance(scheduler, lr_scheduler.PolynomialLR):
        return int(scheduler.total_iters)
    if isinstance(scheduler, lr_scheduler.LinearLR) and scheduler.end_factor < scheduler.start_factor:
        return int(scheduler.total_iters)
    if isinstance(scheduler, lr_scheduler.LambdaLR):
        return _formula(scheduler)[1]
    return None


def _simulated(scheduler: Any) -> Callable[[int], float] | None:
    """The learning rates of a copy of the scheduler with an optimizer of its own, from where it stands."""
    groups = [
        {name: value for name, value in group.items() if name != "params"} | {"params": [torch.zeros(1)]}
        for group in raw_optimizer(scheduler.optimizer).param_groups
    ]
    try:
        twin = _twin(scheduler, torch.optim.SGD(copy.deepcopy(groups), lr=0.1))
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return None
    rates = [float(twin.optimizer.param_groups[0]["lr"])]

    def rate(step: int) -> float:
        while len(rates) <= step:
            try:
                with warnings.catch_warnings(action="ignore"):  # no optimizer step comes before
                    twin.step()
            except ValueError:  # OneCycleLR at its end
                rates.append(rates[-1])
                continue
            rates.append(float(twin.optimizer.param_groups[0]["lr"]))
        return rates[step]

    return rate


def _twin(scheduler: Any, optimizer: Optimizer) -> Any:
    twin = copy.copy(scheduler)
    twin.__dict__ = {
        name: value if name in ("optimizer", "lr_lambdas") else copy.deepcopy(value)
        for name, value in vars(scheduler).items()
        if name not in ("_schedulers", "optimizer", "step")
    }
    twin.optimizer = optimizer
    if "_schedulers" in vars(scheduler):
        twin._schedulers = [_twin(each, optimizer) for each in scheduler._schedulers]
    return twin
