from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class CheckpointTorn(Loss):
    """A kill while a checkpoint is written leaves nothing to go on from, or something that is taken for whole.

    ## Why is this a bug?
    Writing takes time, and jobs are killed while they write: by a time limit, or by the memory that the copy takes. The
    overwritten file is lost and the new one is only half there; the next start fails, begins anew, or goes on with a
    part of it.

    ## What to do
    Write to another name in the same folder and os.replace() it when it is complete; of a folder of files let the last
    one say that it is whole, and go on from the latest that is.

    ## When it is right
    When an earlier checkpoint is used instead: then nothing is reported.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        return None  # harness.resume.judge compares what is lost in a save with what is lost elsewhere
