from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End, PassEnds, Scored
from harness.watch.facts.evaluations_by_hand import EvaluationsByHand
from harness.watch.facts.modes import FirstForward, Modes
from harness.watch.monitor import Monitor


class EvaluationInTrainMode(Check):
    """A model is evaluated while it is in train mode, so that dropout changes its predictions at random.

    ## Why is this a bug?
    The score is that of a model with a part of its activations missing: too low, and another one each time. Batch
    normalisation also takes the statistics of the evaluation's rows into its own, which changes the model.

    ## What to do
    Call model.eval() before the evaluation, and model.train() after it.

    ## When it is right
    A look at a single batch is not reported, nor are several forwards for each batch (Monte Carlo dropout), nor a pass
    over rows that are trained on, nor a model without dropout and batch normalisation. Without a DataLoader, what is
    reported is a tensor that is scored between updates more than once, or after the last one, and never trained on: a
    teacher's predictions, a generator's pictures, rewards and choices of rows to train on are not.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    """

    id = "mode::evaluation-in-train-mode"
    needs = "evaluation over a DataLoader"
    formerly = ("mode::evaluation-in-eval-mode",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.modes = monitor.fact(Modes)
        self.by_hand = monitor.fact(EvaluationsByHand)

    def on_pass_ends(self, event: PassEnds) -> None:
        first = self.modes.evaluated
        repeated = event.of.forwards > event.of.batches
        self.looked |= first is not None and not repeated
        if first is not None and first.training and first.active and not repeated:
            self._found(first)

    def on_scored(self, event: Scored) -> None:
        if self.by_hand.found is not None:
            self._found(self.by_hand.found)

    def on_end(self, event: End) -> None:
        if self.by_hand.found is not None:
            self._found(self.by_hand.found)

    def _found(self, first: FirstForward) -> None:
        self.found(
            expected="model.eval() before the evaluation",
            observed=f"the model is in train mode, and {first.active} of its dropout or normalisation modules work",
            where=first.where,
        )
