from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.loss.observations.candidates import CandidatesScored
from harness.watch.checks.loss.observations.loss_values import MIN_EQUAL_LOSSES, MIN_ROWS


class RightAmongWrong(Check):
    """The right candidate of a row is among its wrong ones as well, so the loss pushes it up and down.

    ## Why is this a bug?
    Contrastive and ranking losses raise the score of what belongs to a row, and lower those of the others. A candidate
    that is in both places gets both gradients: the loss cannot fall below log 2 for that row, and the model is taught
    to tell a thing from itself. It comes of negatives that are drawn from a list with the positive in it, and of
    batches in which a text occurs twice.

    ## What to do
    Draw negatives from a list without the row's positive; with in-batch negatives, mask or leave out what is the same
    as the positive.

    ## When it is right
    Ignore this warning if a few alike candidates are meant. It is given only if at least one row of eight has another
    candidate with the very score of the right one, in five batches; scores in half precision are not compared, nor are
    rows of which most candidates have the same one.

    ## References
    - https://arxiv.org/abs/2007.00224
    """

    severity = "warning"
    new_since = "0.4.0"

    def judge(self, fact: CandidatesScored) -> Verdict:
        if fact.batches < MIN_EQUAL_LOSSES:
            return NOTHING_TO_JUDGE
        if fact.twice * MIN_ROWS < fact.rows:
            return HELD
        return Found(
            expected="one candidate of each row with the score of the right one",
            observed=f"in {fact.twice} of {fact.rows} rows another candidate has exactly the score of the right one",
        )
