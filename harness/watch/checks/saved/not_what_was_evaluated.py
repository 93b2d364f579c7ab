from __future__ import annotations

from collections import Counter

import torch

from harness import launch
from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, Load, Save
from harness.watch.facts.saved_states import SavedState, SavedStates, Values, are_the_same
from harness.watch.facts.trained_models import are_alike
from harness.watch.monitor import Monitor

OFTEN = 64
"""Evaluations of a model, each with a backward pass after it, from which on it is looked at seldom: a teacher is called
so in each update, and evaluations are fewer. Neither half nor double of it changes a verdict of the corpus."""


class NotWhatWasEvaluated(Check):
    """The weights that are evaluated at the end are saved nowhere: what is saved are others.

    ## Why is this a bug?
    A moving average of the weights is often better than the weights themselves, and it is what the script evaluates. If
    the file has the weights that the optimizer changed, it does not give that result, and nobody has evaluated what is
    in it. The same goes for a best state that is restored before the evaluation but not before the save.

    ## What to do
    Save the model that you evaluate (`ema.module.state_dict()`), or evaluate what you save.

    ## When it is right
    Saving both, or evaluating both, is not reported, nor is a model whose weights have nothing in common with those
    that are saved.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """

    status = "new"
    needs = "evaluation after the training, and a state saved after it"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.states = monitor.fact(SavedStates)
        self.evaluated: dict[int, tuple[int, Values]] = {}
        """The weights that were evaluated since the latest backward pass, by number of the model, and the number of the
        one that is trained with such weights."""
        self.followed: Counter[int] = Counter()
        """How often a backward pass came after that."""
        self.saved: list[SavedState] = []
        """What was saved since then."""
        self.suspect: SavedState | None = None
        """The first that is not among those."""

    def on_backward(self, event: Backward) -> None:
        self._judge()
        for number in self.evaluated:
            self.followed[number] += 1
        self.evaluated.clear()
        self.saved.clear()

    def on_save(self, event: Save) -> None:
        self.saved += [each for each in self.states.latest if each.values]

    def on_load(self, event: Load) -> None:
        """What is evaluated from now on are other weights."""
        self.evaluated.clear()

    def on_forward(self, event: Forward) -> None:
        if event.gradients or event.model.training or not self.monitor.stepped:
            return
        number = self.monitor.number_of(event.model)
        if number not in self.evaluated and (self.followed[number] < OFTEN or self.monitor.is_sampled()):
            for of, values in self.states.values_of(event.model):
                self.evaluated[number] = of, values

    def _judge(self) -> None:
        """Compare what was evaluated since the latest backward pass with what was saved since."""
        latest = [each for each in self.saved if each.updates_made == self.monitor.updates_made]
        if not (latest and self.evaluated):
            return
        self.looked = True
        for of, values in self.evaluated.values() if self.suspect is None else ():
            saved = [each for each in latest if each.of == of]
            if saved and not any(
                are_the_same(other, each.values) for _, other in self.evaluated.values() for each in saved
            ):
                names = list(saved[-1].values)
                ones, others = (
                    torch.cat([each[name].float() for name in names]) for each in (values, saved[-1].values)
                )
                self.suspect = saved[-1] if are_alike(ones, others) else None

    def on_end(self, event: End) -> None:
        self._judge()
        saves = [each for each in self.states.saves if each.values]
        if self.suspect is None or not (self.monitor.complete and launch.is_main_process()):
            return
        if not all(each.current for each in saves):
            return  # a copy is saved besides: the average, or the best
        if any(are_the_same(each.values, values) for each in saves for _, values in self.evaluated.values()):
            return
        self.found(
            expected="the weights that were evaluated, in what is saved",
            observed="the model that is evaluated has other weights than the one that is saved: an average of them, or "
            "an earlier state",
            where=self.suspect.where,
            update=self.suspect.updates_made,
        )
