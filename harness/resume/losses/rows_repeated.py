from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import evidence_of_rows
from harness.resume.loss import Evidence, Loss


class RowsRepeated(Loss):
    """After a resume, the script trains again on rows of the interrupted epoch.

    ## Why is this a bug?
    The epoch begins again with its first batch, or goes back too far: its rows count twice, and the schedule reaches
    its end before the data do.

    ## What to do
    Save how many batches of the epoch are done, and skip that many in the same order: accelerate.skip_first_batches, a
    stateful sampler, or a slice of the epoch's permutation.

    ## When it is right
    When an unfinished epoch is meant to be repeated from the checkpoint at its start: then the weights of that
    checkpoint are loaded, and nothing is reported.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        return evidence_of_rows(attempt, "repeated")
