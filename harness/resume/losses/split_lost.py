from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss
from harness.starts.journal import MOST_ROWS


class SplitLost(Loss):
    """After a resume, the data are split anew: rows that were held out are trained with, or the other way round.

    ## Why is this a bug?
    The weights come from a training on the first split, and are then evaluated with rows of it. The score is too good,
    more so with every restart, and the best checkpoint is chosen by it.

    ## What to do
    Draw the split from a generator of its own with a fixed seed, before a random state is loaded; or save the indices
    with the checkpoint, and read them back.

    ## When it is right
    In cross-validation, where each fold is meant to be another training. Where more than half of the rows that are
    evaluated are trained with as it is, nothing is reported.
    """

    since = "0.4.0"
    explains = (
        "resume::data-order-lost",
        "resume::rows-repeated",
        "resume::rows-skipped",
        "resume::epoch-skipped",
        "resume::epoch-repeated",
        "resume::computes-otherwise",
        "resume::best-score-lost",
    )

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        if attempt.anew or not attempt.resumed.updates:
            return None
        taught, evaluated = attempt.whole.taught, attempt.whole.evaluated
        both = taught & evaluated  # rows that come in both parts as it is
        if max(len(taught), len(evaluated)) >= MOST_ROWS or 2 * len(both) > len(evaluated):
            return None  # it is not known of all, or what is evaluated is not held out
        leaked = (attempt.killed.evaluated & attempt.resumed.taught) - both
        known = (attempt.killed.taught & attempt.resumed.evaluated) - both
        if not leaked and not known:
            return None
        held_out = len(attempt.killed.evaluated)
        leaks = [f"{len(leaked)} of them are now trained on"] * bool(leaked)
        leaks += [f"{len(known)} rows that were trained on before are now held out"] * bool(known)
        return Evidence(
            f"the {held_out} rows that were held out before the kill to stay held out",
            ", and ".join(leaks),
            attempt.load_line,
            attempt.origin + 1,
        )
