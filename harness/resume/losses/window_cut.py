from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import evidence_of_rows
from harness.resume.loss import Evidence, Loss


class WindowCut(Loss):
    """A checkpoint inside an accumulation window loses the gradients of the window's first micro-batches.

    ## Why is this a bug?
    No `state_dict` contains gradients: the micro-batches before the checkpoint count as done, and their gradients are
    gone. The update uses only a part of its window, or the windows are shifted from then on.

    ## What to do
    Save only right after an optimizer step, or resume from the first micro-batch of the window.

    ## When it is right
    When the gradients are saved with the weights: then nothing is reported.
    """

    explains = ("resume::rows-skipped",)

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        return evidence_of_rows(attempt, "window")
