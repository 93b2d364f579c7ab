from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import SCORE, end_differs, other_files, other_values
from harness.resume.loss import Evidence, Loss, several
from harness.starts.journal import is_tensor


class EmaLost(Loss):
    """A second copy of the weights, such as their moving average, has changed after a resume.

    ## Why is this a bug?
    Averaged weights are what is evaluated and shipped. If they are made anew from the current weights, they have
    forgotten all updates before the kill, while the training itself goes on as it should.

    ## What to do
    Also save the state_dict() of the averaged model, with its update count, and load it.

    ## When it is right
    When the average is meant to begin anew.
    """

    explains = ("resume::best-score-lost",)

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        if attempt.anew:
            return None
        parting = attempt.parting
        if parting is not None and parting.others and not (parting.weights or parting.rows_differ):
            return Evidence(
                f"the weights of {several(parting.others)} that are evaluated before update {parting.update}",
                "different weights, while the trained ones are the same",
                attempt.load_line,
                parting.update,
            )
        if parting is not None or attempt.excess or other_files(attempt) is not None:
            return None
        if end_differs(attempt):
            return Evidence(
                "the weights of the model that is evaluated at the end",
                "different weights, while the trained ones are the same",
                attempt.load_line,
            )
        for whole, _, key in other_values(attempt):
            if is_tensor(whole.values[key]) and not SCORE.search(key.rpartition(".")[2]):
                return Evidence(
                    f"the same {key} in {whole.path} after update {whole.at} as without the kill",
                    "a different one, while the trained weights are the same",
                    attempt.load_line,
                    whole.at,
                )
        return None
