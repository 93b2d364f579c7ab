from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import SCORE, other_files, other_values, stops_by_score
from harness.resume.loss import Evidence, Loss
from harness.starts.journal import is_tensor


class BestScoreLost(Loss):
    """The best score so far, or the count for early stopping, is lost when the script resumes.

    ## Why is this a bug?
    The first evaluation after the resume counts as the best so far and overwrites a better model, or the count for
    patience starts again and the run ends at another update.

    ## What to do
    Save the best score and the number of evaluations without improvement with the weights, and load both.

    ## When it is right
    When each start is meant to keep a best model of its own.
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        if attempt.anew or attempt.parting is not None:
            return None
        if stops_by_score(attempt):
            return Evidence(
                f"{len(attempt.whole.updates)} updates, as without the kill",
                f"{attempt.made}: a different score or count decided when to stop",
                attempt.load_line,
                min(attempt.made, len(attempt.whole.updates)),
            )
        if attempt.excess:
            return None
        found = other_files(attempt)
        if found is not None:
            saved, at, written = found
            return Evidence(
                f"{saved.path} {'not ' * written}to be written after update {at}",
                f"it is {'not ' * (not written)}written after that update",
                saved.where,
                at,
            )
        for whole, resumed, key in other_values(attempt):
            shown = key.rpartition(".")[2] if is_tensor(whole.values[key]) else key
            if SCORE.search(shown):
                return Evidence(
                    f"{key} {whole.values[key]} in {whole.path} after update {whole.at}",
                    resumed.values[key],
                    attempt.load_line,
                    whole.at,
                )
        return None
