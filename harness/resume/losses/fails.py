from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class Fails(Loss):
    """The script cannot be started again after it was killed.

    ## Why is this a bug?
    What the first start left behind (a folder, a checkpoint, a lock) makes the next one raise an error: nothing is
    silent here, but the run cannot go on.

    ## What to do
    Read the error; a checkpoint must load into what the script has made at that point, and folders must be allowed to
    exist.

    ## When it is right
    When the script needs an argument to go on; pass it with `--resume-args`.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        end = attempt.resumed.end
        if end is not None and end.crashed is None:
            return None
        if end is not None and end.crashed is not None:
            said = end.crashed.strip().splitlines()[-1]
        elif attempt.hung is not None:
            said = f"it had not ended after {attempt.hung:.0f} s, {len(attempt.resumed.updates)} updates later"
        else:
            said = "it ended without a word"
        return Evidence(
            f"to go on after a kill at update {attempt.kill.at}",
            said,
            None if end is None else end.where,
            attempt.origin + len(attempt.resumed.updates) + 1,
        )
