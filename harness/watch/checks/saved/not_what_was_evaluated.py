from __future__ import annotations

from dataclasses import dataclass

import torch

from harness import launch
from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward
from harness.watch.facts.saved_states import SavedStates, Values, are_the_same
from harness.watch.facts.trained_models import are_alike
from harness.watch.monitor import Monitor


@dataclass(frozen=True)
class _Evaluated:
    """Weights that were evaluated since the latest backward pass."""

    values: Values
    where: str | None


class NotWhatWasEvaluated(Check):
    """The weights that are evaluated at the end are saved nowhere: what is saved are others.

    ## Why is this a bug?
    A moving average of the weights is often better than the weights, and is what the evaluation is told of. If the file
    has the weights that the optimizer changed, it does not give that result, and nobody has evaluated what is in it.
    The same goes for a best state that is put back before the evaluation and not before the save.

    ## What to do
    Save the model that you evaluate (`ema.module.state_dict()`), or evaluate what you save.

    ## When it is right
    Saving both, or evaluating both, is not reported, nor is a model whose weights have nothing in common with those
    that are saved.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """

    id = "saved::not-what-was-evaluated"
    status = "new"
    needs = "evaluation after the training, and a state saved after it"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.states = monitor.fact(SavedStates)
        self.evaluated: dict[int, _Evaluated] = {}
        """By number of the model, since the latest backward pass."""

    def on_backward(self, event: Backward) -> None:
        self.evaluated.clear()

    def on_forward(self, event: Forward) -> None:
        if event.gradients or event.batch is None or event.batch.of.trains or not self.monitor.stepped:
            return
        number = self.monitor.number_of(event.model)
        if number not in self.evaluated:
            for values in self.states.values_of(event.model):
                self.evaluated[number] = _Evaluated(values, event.where)

    def on_end(self, event: End) -> None:
        made = self.monitor.updates_made
        saves = list(self.states.saves)
        latest = [each for each in saves if each.updates_made == made]
        if not (latest and self.evaluated and self.monitor.complete and launch.is_main_process()):
            return
        self.looked = True
        if not all(each.current for each in saves):
            return  # a copy is saved besides: the average, or the best
        saved = [each.values for each in saves]
        if any(are_the_same(each.values, values) for each in self.evaluated.values() for values in saved):
            return
        first = next(iter(self.evaluated.values()))
        names = [name for name in first.values if name in latest[-1].values]
        ones, others = (torch.cat([each[name].float() for name in names]) for each in (first.values, latest[-1].values))
        if are_alike(ones, others):
            self.found(
                expected="the weights that were evaluated, in what is saved",
                observed="the model that is evaluated when the training is over has other weights than any that was "
                "saved: an average of them, or an earlier state",
                where=latest[-1].where,
                update=made,
            )
