from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import PassEnds
from harness.watch.facts.modes import Modes
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
    over rows that are trained on, nor a model without dropout and batch normalisation.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    """

    id = "mode::evaluation-in-train-mode"
    needs = "evaluation over a DataLoader"
    formerly = ("mode::evaluation-in-eval-mode",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.modes = monitor.fact(Modes)

    def on_pass_ends(self, event: PassEnds) -> None:
        first = self.modes.evaluated
        repeated = event.of.forwards > event.of.batches
        self.looked |= first is not None and not repeated
        if first is not None and first.training and first.active and not repeated:
            self.found(
                expected="model.eval() before the evaluation",
                observed=f"the model is in train mode, and {first.active} of its dropout or normalisation modules work",
                where=first.where,
            )
