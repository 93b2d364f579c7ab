from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class Fails(Loss):
    """The script crashes when it is restarted after a kill.

    ## Why is this a bug?
    What the first start left behind (a folder, a checkpoint, a lock) makes the next one raise an error: nothing is
    silent here, but the run cannot go on.

    ## What to do
    Read the error. The checkpoint must fit what the script has built by then, and folders may already exist
    (exist_ok=True).

    ## When it is right
    When the script needs an argument to go on; pass it with `--resume-args`.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        end = attempt.resumed.end
        if end is not None and end.crashed is None:
            return None
        if end is not None and end.crashed is not None:
            how = end.crashed.strip().splitlines()[-1]
        elif attempt.hung is not None:
            how = f"it had not ended after {attempt.hung:.0f} s, {len(attempt.resumed.updates)} updates later"
        else:
            how = "it ended without a message"
        return Evidence(
            f"to continue after a kill at update {attempt.kill.at}",
            how,
            None if end is None else end.where,
            attempt.origin + len(attempt.resumed.updates) + 1,
        )
