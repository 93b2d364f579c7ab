from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import evidence_of_rows
from harness.resume.loss import Evidence, Loss


class RowsSkipped(Loss):
    """After a resume, the script never trains on some rows of the interrupted epoch.

    ## Why is this a bug?
    The rest of the epoch is left out, or more batches are skipped than were done: after some kills, the model has not
    seen a large part of the data.

    ## What to do
    When you save, count the finished batches (not updates), and skip exactly that many, once.

    ## When it is right
    When the data are an endless stream and any part of it is as good as another.

    ## References
    - https://github.com/modelscope/ms-swift/issues/10050
    """

    explains = ("resume::epoch-skipped",)

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        return evidence_of_rows(attempt, "skipped")
