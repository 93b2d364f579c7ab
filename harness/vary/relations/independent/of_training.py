from __future__ import annotations

from harness.vary.chance import majority
from harness.vary.differences import Run, score, steady
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks


class OfTraining(Relation):
    """A model that was never changed scores exactly as the trained one does.

    ## Why is this a bug?
    With a learning rate of 0 every update leaves the weights as they are. Where the evaluated model says the same, bit
    for bit, it is not the model that is trained: another one is scored, one that was loaded, or a copy from before.

    ## What to do
    Evaluate the model that the optimizer holds, and load nothing into it in between.

    ## When it is right
    When the evaluated model is meant to be another one, such as a teacher or a baseline.
    """

    new_since = "0.4.0"
    kind = "rate 0"
    tries = "train with a learning rate of 0"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        base = majority(tried)
        return base if isinstance(base, str) else cls.of_loaders(())

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        before, after = (score(steady(each, each)[0].values()) for each in (tried.first, other))
        if before is None or after is None:
            return lacks("the script reports no accuracy")
        said = [_said(each) for each in (tried.first, other)]
        if not said[0] or said[0] != said[1] or before.value != after.value:
            return HELD
        return broken(
            "another answer of a model that was never changed",
            f"the same {before.name}, {before.value:g}, and the same outputs in all {len(said[0])} evaluated calls",
            before.where,
        )


def _said(run: Run) -> list[str]:
    """What models said without gradients after the first update, as digests."""
    later = [each for update in run.journal.updates[1:] for each in update.evaluations]
    return [*later, *(run.journal.end.evaluations if run.journal.end is not None else ())]
