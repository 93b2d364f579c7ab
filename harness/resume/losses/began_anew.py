from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss


class BeganAnew(Loss):
    """The restarted script begins with its first update again, although it had written a checkpoint.

    ## Why is this a bug?
    All work before the kill is lost without a word: exit status 0, a log that looks correct, and twice the hours. Often
    the script writes the checkpoint but never looks for it, or looks for it under another name.

    ## What to do
    Look for a checkpoint at the start, and continue from it. If the script needs an argument for that, pass it with
    --resume-args.

    ## When it is right
    When no checkpoint had been completed before the kill: then nothing is reported.
    """

    explains = ("resume::epoch-repeated",)

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        checkpoint = attempt.checkpoint
        if not attempt.anew or checkpoint is None or checkpoint.at == 0:
            return None
        return Evidence(
            f"to continue after update {checkpoint.at}, whose checkpoint is {checkpoint.path}",
            "it starts from the beginning: the first update after the kill has the weights, the optimizer and the "
            "rows of update 1",
            attempt.load_line,
            1,
        )
