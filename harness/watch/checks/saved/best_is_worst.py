from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.torch_objects import share_parameters
from harness.watch.check import Check
from harness.watch.events import End, StateAsked, TrainerMade
from harness.watch.facts.evaluations import Evaluations, Result
from harness.watch.facts.trained_models import TrainedModels
from harness.watch.monitor import Monitor

LOSSES = ("loss", "error", "perplexity", "mse", "mae", "wer", "cer")
"""How the names of metrics end that are better when they are smaller."""

SCORES = ("accuracy", "f1", "precision", "recall", "matthews", "auc", "bleu")
"""What is in the names of metrics that are better when they are larger."""


NEGATED = ("neg", "minus")
"""How the names of losses begin that are better when they are larger."""


@dataclass(frozen=True)
class Compared:
    """An evaluation, compared with all before it."""

    kept: bool
    """Whether the state was kept after it."""
    most_accurate: bool
    least_accurate: bool
    smallest_loss: bool
    largest_loss: bool


class BestIsWorst(Check):
    """The checkpoint that is kept as the best is the worst by its metric: the comparison goes the wrong way.

    ## Why is this a bug?
    A loss is better when it is smaller, accuracy and F1 when they are larger. With the comparison the wrong way round,
    the script keeps the state of the worst epoch, restores it at the end and saves it, and early stopping waits for
    things to get worse. The numbers that are printed in between are correct.

    ## What to do
    A loss is better when it is smaller, accuracy and F1 when they are larger.

    With Trainer, set `greater_is_better` for the metric, or leave it out if the metric's name implies it.

    ## When it is right
    Keeping every state, or the best by another metric than accuracy and loss, is not reported. Only a loop that keeps
    the state exactly after those evaluations whose accuracy was the lowest so far, or whose loss was the highest so
    far, is reported.

    ## References
    - https://github.com/huggingface/transformers/issues/31142
    """

    needs = "state kept after one of several evaluations"
    formerly = ("saved::best-is-best",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained = monitor.fact(TrainedModels)
        self.evaluations = monitor.fact(Evaluations)
        self.kept: dict[int, str | None] = {}
        """After how many updates the state was asked for, and where: those with an evaluation, and the latest."""

    def on_state_asked(self, event: StateAsked) -> None:
        if any(share_parameters(event.module, other) for other in self.trained.all):
            evaluated = {result.updates_made for result in self.evaluations.history}
            self.kept = {made: where for made, where in self.kept.items() if made in evaluated}
            self.kept[self.monitor.updates_made] = event.where

    def on_end(self, event: End) -> None:
        """Who keeps the state after some evaluations and not after others keeps the best."""
        first = {result.updates_made: result for result in reversed(self.evaluations.history)}
        results = [first[made] for made in sorted(first)]
        if results and results[-1].updates_made == self.monitor.updates_made:
            results.pop()  # at the end the state is asked for anyway
        if len(results) < 2 or results[0].updates_made not in self.kept:
            return
        self.looked = True
        later = list(self._compared(results))
        kept = [each.kept for each in later]
        better = any(each.most_accurate and each.smallest_loss for each in later)
        if all(kept) or not (any(kept) or better):
            return
        best = [each.most_accurate for each in later], [each.smallest_loss for each in later]
        largest = kept == [each.largest_loss for each in later]
        worst = kept == [each.least_accurate for each in later]
        if (worst or largest) and kept not in best:
            places = [place for made, place in self.kept.items() if made] or list(self.kept.values())
            what = "loss is the largest" if largest else "accuracy is the smallest"
            self.found(
                expected="the state of the evaluation with the best result",
                observed=f"the state is kept whenever the {what} so far",
                where=places[-1],
                update=self.monitor.updates_made,
            )

    def _compared(self, results: list[Result]) -> Iterator[Compared]:
        for i, now in enumerate(results[1:], start=1):
            accuracies = [each.accuracy for each in results[:i]]
            losses = [each.loss for each in results[:i]]
            yield Compared(
                kept=now.updates_made in self.kept,
                most_accurate=now.accuracy > max(accuracies),
                least_accurate=now.accuracy < min(accuracies),
                smallest_loss=now.loss < min(losses),
                largest_loss=now.loss > max(losses),
            )

    def on_trainer_made(self, event: TrainerMade) -> None:
        arguments, callbacks = event.trainer.args, event.trainer.callback_handler.callbacks
        metric, greater = arguments.metric_for_best_model, arguments.greater_is_better
        stops_early = any("EarlyStopping" in type(callback).__name__ for callback in callbacks)
        if metric is None or greater is None or not (arguments.load_best_model_at_end or stops_early):
            return
        self.looked = True
        name = metric.lower().removeprefix("eval_")
        is_loss = name.endswith(LOSSES) and not name.startswith(NEGATED)
        is_score = any(word in name for word in SCORES) and not name.endswith(LOSSES)
        if (is_loss and greater) or (is_score and not greater):
            self.found(
                expected=f"greater_is_better={not greater} for {metric}",
                observed=f"greater_is_better={greater}: the worst checkpoint is kept",
                where=event.where,
                hint="Set greater_is_better for the metric, or leave it out where the metric's name says it.",
            )
