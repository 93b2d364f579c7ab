from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss
from harness.resume.rows import other_rows


class EpochSkipped(Loss):
    """The script makes fewer updates than without the kill, because it skips an epoch.

    ## Why is this a bug?
    A counter that is raised before its epoch is over, or raised twice (when it is saved and when it is loaded), skips
    an epoch at each resume. The training ends early, with exit status 0.

    ## What to do
    Save the number of the next epoch when an epoch is over, and start the epoch loop there.

    ## When it is right
    Never within one run of a script.

    ## References
    - https://github.com/verl-project/verl/issues/7401
    """

    explains = (
        "resume::data-order-lost",
        "resume::schedule-lost",
        "resume::random-state-lost",
    )

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        rows = other_rows(attempt)
        if attempt.anew or attempt.excess >= 0:
            return None
        if rows is not None and rows.kind not in ("epoch skipped", "order"):
            return None
        return Evidence(
            f"{len(attempt.whole.updates)} updates in all, as without the kill",
            f"{attempt.made}: {attempt.origin} before it was started again, and {len(attempt.resumed.updates)} after",
            attempt.load_line,
            attempt.made,
        )
