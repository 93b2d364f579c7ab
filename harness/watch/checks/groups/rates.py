from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.watch.bounded import First
from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.events import End, OptimizerMade, StepBegins

MIN_STEPS = 5
"""Steps from which on groups that had one rate each time have it for good. By reasoning: a warmup may begin at 0 in
all of them, and steps at a rate of 0 are not counted."""


class RatesMadeAlike(Check):
    """Parameter groups were given different learning rates, but have the same one in each step.

    ## Why is this a bug?
    A lower rate for a pretrained body, or a higher one for a new head, is lost as soon as a schedule of your own writes
    one rate into each group, or a scheduler has one number for all: `OneCycleLR(optimizer, max_lr=1e-3)` replaces the
    rate of each group. Nothing warns about it, and the body is trained at the rate of the head.

    ## What to do
    Scale each group's own rate: `group["lr"] = factor * group["initial_lr"]`, or give the scheduler one rate for each
    group: `max_lr=[1e-5, 1e-3]`.

    ## When it is right
    Ignore this warning if the rates that the optimizer was made with are meant to be replaced. Groups that were made
    with one rate, and those whose rates differ in at least one step, are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html
    - https://github.com/huggingface/nanotron/pull/404
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "optimizer whose groups were made with different learning rates"

    def begin(self) -> None:
        self._made: WeakKeyDictionary[Optimizer, list[float]] = WeakKeyDictionary()
        self._seen: WeakKeyDictionary[Optimizer, _Seen] = WeakKeyDictionary()
        self._all = First[_Seen]()
        """The same: an optimizer of a function is gone when the run ends."""

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        self._made[event.optimizer] = _rates(event.optimizer)

    def on_step_begins(self, event: StepBegins) -> None:
        made = self._made.get(event.optimizer, [])
        rates = _rates(event.optimizer)
        if len(set(made)) < 2 or len(rates) != len(made) or not any(rates):
            return
        if event.optimizer not in self._seen:
            self._seen[event.optimizer] = _Seen(event.made, made)
            self._all.append(self._seen[event.optimizer])
        seen = self._seen[event.optimizer]
        seen.steps += 1
        seen.alike += len(set(rates)) == 1
        seen.first = seen.first or rates[0]

    def on_end(self, event: End) -> None:
        kept = [seen.ratios for seen in self._all if seen.alike < seen.steps]
        for seen in self._all:
            if seen.alike < seen.steps or seen.ratios not in kept:  # else one rate for all is tried on a copy
                self.says(self.judge(seen.made, seen.first, seen.steps, seen.alike), seen.where)

    @staticmethod
    def judge(made: list[float], first: float, steps: int, alike: int) -> Verdict:
        """The rates that the groups were made with, their ``first`` common one, and how many steps had a common one."""
        if alike < steps:
            return Held(f"rates that differ in {steps - alike} of {steps} steps")
        if steps < MIN_STEPS:
            return NOTHING_TO_JUDGE
        rates = ", ".join(f"{rate:g}" for rate in dict.fromkeys(made))
        return Found(
            expected=f"groups that keep the ratio of their rates, {rates}",
            observed=f"in all {steps} steps they have one rate, {first:g} at first",
        )


class _Seen:
    """The steps of an optimizer whose rates were not 0."""

    def __init__(self, where: str | None, made: list[float]) -> None:
        self.where, self.made, self.steps, self.alike, self.first = where, made, 0, 0, 0.0
        self.ratios = [round(rate / max(made), 6) for rate in made]


def _rates(optimizer: Optimizer) -> list[float]:
    rates = [group["lr"] for group in optimizer.param_groups if "lr" in group]
    if any(torch.is_tensor(rate) and rate.device.type != "cpu" for rate in rates):
        return []  # a step must not wait for them
    return [float(rate) for rate in rates if rate is not None]  # Adafactor has rates of its own
