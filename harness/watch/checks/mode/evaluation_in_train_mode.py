from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, Pass, PassEnds, Scored
from harness.watch.facts.evaluations_by_hand import ON_PURPOSE, EvaluationsByHand
from harness.watch.facts.modes import FirstForward, Modes
from harness.watch.facts.scored_passes import ScoredPasses
from harness.watch.monitor import Monitor


class EvaluationInTrainMode(Check):
    """A model is evaluated while it is in train mode, so that dropout changes its predictions at random.

    ## Why is this a bug?
    The score is that of a model with some of its activations missing: too low, and different each time. Batch
    normalisation also mixes the statistics of the evaluation's rows into its own, which changes the model.

    ## What to do
    Call model.eval() before the evaluation, and model.train() after it.

    ## When it is right
    A look at a single batch is not reported. Neither are several forward passes for each batch or several passes
    between two updates (Monte Carlo dropout), a pass over rows that are trained on, or a model without dropout and
    batch normalisation. A pass that only refreshes the statistics of batch normalisation, and scores nothing, is right
    if `update_bn` makes it, or if the model is called in eval mode next. Without a DataLoader, only a tensor that is
    scored more than once between updates, or after the last one, and never trained on is reported: a teacher's
    predictions, a generator's pictures, rewards and choices of rows to train on are not.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    """

    needs = "evaluation over a DataLoader"
    formerly = ("mode::evaluation-in-eval-mode",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.modes = monitor.fact(Modes)
        self.by_hand = monitor.fact(EvaluationsByHand)
        self.scored = monitor.fact(ScoredPasses)
        self.held: list[tuple[Pass, FirstForward]] = []
        """Passes in train mode since the latest update: what comes next says what they were for."""

    def on_pass_ends(self, event: PassEnds) -> None:
        first = self.modes.evaluated
        repeated = event.of.forwards > event.of.batches
        self.looked |= first is not None and not repeated
        if first is not None and first.training and first.active and not repeated:
            self.held.append((event.of, first))

    def on_forward(self, event: Forward) -> None:
        if self.held and not event.model.training:
            number = self.monitor.number_of(event.model)
            self.held = [(of, first) for of, first in self.held if of.model != number or not self._renews(of, first)]

    def _renews(self, of: Pass, first: FirstForward) -> bool:
        """Whether it can only have been for the statistics of batch normalisation."""
        return first.norms and of not in self.scored.all

    def on_backward(self, event: Backward) -> None:
        self._judge()

    def _judge(self) -> None:
        for of, first in self.held:
            rounds = sum(each.dataset is of.dataset and each.model == of.model for each, _ in self.held)
            if not of.trains and rounds < ON_PURPOSE and not (first.averages and self._renews(of, first)):
                self._found(first)
        self.held.clear()

    def on_scored(self, event: Scored) -> None:
        if self.by_hand.found is not None:
            self._found(self.by_hand.found)

    def on_end(self, event: End) -> None:
        self._judge()
        if self.by_hand.found is not None:
            self._found(self.by_hand.found)

    def _found(self, first: FirstForward) -> None:
        self.found(
            expected="model.eval() before the evaluation",
            observed=f"the model is in train mode, and {first.active} of its dropout or normalisation modules work",
            where=first.where,
        )
