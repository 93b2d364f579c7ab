from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class CheckpointTorn(Loss):
    """A kill during a save leaves no usable checkpoint, or a broken one that the script takes for complete.

    ## Why is this a bug?
    Writing takes time, and jobs are killed while they write: by a time limit, or by the memory that the copy takes. The
    overwritten file is lost and the new one is only half there; the next start fails, begins anew, or goes on with a
    part of it.

    ## What to do
    Write to a temporary name in the same folder, and os.replace() it when it is complete. If a checkpoint is a folder,
    write a marker file last, and resume from the latest folder that has it.

    ## When it is right
    When an earlier checkpoint is used instead: then nothing is reported.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        return None  # harness.resume.judge compares what is lost in a save with what is lost elsewhere
