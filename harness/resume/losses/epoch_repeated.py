from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import stops_by_score
from harness.resume.loss import Evidence, Loss
from harness.resume.plan import epochs
from harness.resume.rows import other_rows


class EpochRepeated(Loss):
    """The script makes more updates than without the kill, because it counts epochs from the start again.

    ## Why is this a bug?
    After each kill, the script trains the full number of epochs once more, with a schedule that is at its end.

    ## What to do
    Save the epoch number, and start the epoch loop there.

    ## When it is right
    When a start with a checkpoint is meant to train for further epochs.
    """

    explains = (
        "resume::data-order-lost",
        "resume::schedule-lost",
        "resume::random-state-lost",
    )

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        if attempt.anew or attempt.excess <= 0 or (attempt.parting is None and stops_by_score(attempt)):
            return None
        rows = other_rows(attempt)
        if (
            rows is not None
            and rows.kind == "repeated"
            and attempt.excess * len(epochs(attempt.whole)) < len(attempt.whole.updates)
        ):
            return None  # less than an epoch: the updates that are too many are those of the rows
        behind = f"{attempt.origin} updates and {attempt.epochs_behind} whole epochs before it was started again"
        return Evidence(
            f"{len(attempt.whole.updates)} updates in all, as without the kill",
            f"{attempt.made} at least: {behind}, and {len(attempt.resumed.updates)} updates after",
            attempt.load_line,
            len(attempt.whole.updates),
        )
