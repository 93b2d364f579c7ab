from __future__ import annotations

import re

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.saved.observations.kept_states import StatesKept
from harness.watch.events import MetricMonitored, TrainerMade

LOSSES = ("loss", "error", "perplexity", "mse", "mae", "wer", "cer")
"""How the names of metrics end that are better when they are smaller."""

LOSS = rf"({'|'.join(LOSSES[:-2])})$|(^|[^a-z])({'|'.join(LOSSES[-2:])})$"
"""A name that ends so: the last two are words of their own, as power and soccer end otherwise."""

SCORES = ("accuracy", "f1", "precision", "recall", "matthews", "auc", "bleu")
"""What is in the names of metrics that are better when they are larger."""

NEGATED = ("neg", "minus", "d_", "disc", "critic")
"""How the names of losses begin that may be better when they are larger; the last are those of an adversary."""


class BestIsWorst(Check):
    """The checkpoint kept as the best is the worst one, because the comparison goes the wrong way.

    ## Why is this a bug?
    A loss is better when it is smaller, accuracy and F1 when they are larger. With the comparison the wrong way round,
    the script keeps the state of the worst epoch, restores it at the end and saves it. Early stopping waits for things
    to get worse. The numbers that are printed in between are correct.

    ## What to do
    Reverse the comparison: a lower loss is better, and a higher accuracy or F1.

    With Trainer, set `greater_is_better` for the metric, or leave it out if the metric's name implies it. With
    Lightning, pass `mode="max"` to `ModelCheckpoint` and `EarlyStopping` for accuracy or F1: `"min"` is their default.

    ## When it is right
    Keeping every state, one in every few epochs, or the best by any number that the script prints or logs is not
    reported. A loop is reported only if it keeps the state exactly after the evaluations whose accuracy (F1, R²) was
    the lowest so far, or whose loss (error, perplexity) was the highest so far.

    ## References
    - https://github.com/huggingface/transformers/issues/31142
    """

    def judge(self, fact: StatesKept) -> Verdict:
        if fact.by is None:
            return HELD
        return Found(
            expected="the state from the evaluation with the best result",
            observed=f"the script keeps the state after each evaluation with {fact.by} so far",
            update=fact.at.updates_made,
        )

    def judge_trainer(self, event: TrainerMade) -> Verdict:
        arguments, callbacks = event.trainer.args, event.trainer.callback_handler.callbacks
        metric, greater = arguments.metric_for_best_model, arguments.greater_is_better
        stops_early = any("EarlyStopping" in type(callback).__name__ for callback in callbacks)
        if metric is None or greater is None or not (arguments.load_best_model_at_end or stops_early):
            return NOTHING_TO_JUDGE
        if not wrong_way(metric, greater=greater):
            return HELD
        return Found(
            expected=f"greater_is_better={not greater} for {metric}",
            observed=f"greater_is_better={greater}: the worst checkpoint is kept",
            hint=f"Set greater_is_better={not greater}, or remove it if the metric's name implies it.",
        )

    def judge_callback(self, event: MetricMonitored) -> Verdict:
        asked, right = ("max", "min") if event.greater else ("min", "max")
        if not wrong_way(event.metric, greater=event.greater):
            return HELD
        return Found(
            expected=f'mode="{right}" for {event.metric}',
            observed=f'{event.callback} with mode="{asked}": the worst state is taken for the best',
            hint=f'Pass mode="{right}" to {event.callback}.',
            where=event.where,
        )


def wrong_way(metric: str, *, greater: bool) -> bool:
    """Whether a metric of this name is a loss of which a larger one is taken for better, or a score the other way."""
    name = re.sub(r"^(eval|val|valid|validation|dev|test)[_/]", "", metric.lower())
    is_loss = bool(re.search(LOSS, name)) and not name.startswith(NEGATED)
    is_score = (any(word in name for word in SCORES) or name == "acc") and not name.endswith(LOSSES)
    return (is_loss and greater) or (is_score and not greater)
