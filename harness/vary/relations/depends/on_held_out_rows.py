from __future__ import annotations

from harness.vary.differences import Run, parting
from harness.vary.relation import Outcome, Relation, Tried, Way, broken, lacks, said_of

CHOSEN = {"rates": "its learning rate", "number of updates": "when it stops"}
"""What a script chooses by its held-out rows, by where the trainings part."""


class OnHeldOutRows(Relation):
    """With different labels on the held-out rows, training ends in different weights.

    ## Why is this a bug?
    If the labels of held-out rows change the training, the model has learned from them. Its score on them then does not
    estimate how it does on new rows.

    ## What to do
    Find what the update takes from the evaluation: a differentiated loss of held-out rows, statistics or class weights
    computed over all rows, or a batch that both loops share.

    ## When it is right
    A learning rate that falls when the score stops rising, early stopping, and the best state that is loaded at the end
    are choices based on the held-out rows. They are mentioned but not reported as a fault. Keep other rows for the
    score that you publish.
    """

    new_since = "0.4.0"
    kind = "held-out labels"
    tries = "exchange the labels of held-out rows"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        loaders = [each for each in tried.evaluated if each.exchangeable]
        return cls.of_loaders(loaders) if loaders else "no evaluation batch has recognisable labels"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if (itself := tried.differs_from_itself()) is not None:
            return lacks(itself)
        if not other.account.exchanged:
            return lacks("all labels of a batch are the same")
        apart = parting(tried.first, other)
        if apart is None:
            return Outcome("held")
        if apart.part in CHOSEN or apart.at_the_end:
            same = "; it reports its score on the same rows" * (len(tried.evaluated) == 1)
            which = CHOSEN.get(apart.part, "which weights it keeps")
            return Outcome("held", f"the script chooses {which} by the held-out rows (update {apart.update}){same}")
        return broken(
            "the same weights with other labels on the held-out rows",
            f"{said_of(apart.part)} in update {apart.update} ({apart.what})",
            apart.where,
            apart.update,
        )
