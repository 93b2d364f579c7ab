from __future__ import annotations

from harness.vary.differences import Run, parting
from harness.vary.relation import Outcome, Relation, Tried, Way, broken, lacks, said_of


class OnBeingEvaluated(Relation):
    """Evaluating the model changes its training: it has learned something from the held-out rows.

    ## Why is this a bug?
    An evaluation should change nothing. If a second call of the model in it changes the training that follows, the
    model also learns from evaluation rows: through running statistics, range observers, caches or counters. The score
    is then computed on rows that the model has seen.

    ## What to do
    Call `model.eval()` before the evaluation and `model.train()` after it. Let your own modules change their buffers
    only `if self.training`.

    ## When it is right
    The second call's result is thrown away and the random state is restored, so randomness cannot cause the difference.
    A model that is meant to learn at test time is reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
    """

    new_since = "0.4.0"
    kind = "evaluated twice"
    tries = "call the model twice in each evaluation"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        if not any(each.at for each in tried.first.account.reported) and not tried.evaluated:
            return "nothing is evaluated between two updates"
        return cls.of_loaders(())

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        again = other.account.asked_again
        if (itself := tried.differs_from_itself()) is not None:
            return lacks(itself)
        if not again:
            return lacks("no call of a model without gradients could be repeated")
        apart = parting(tried.first, other)
        if apart is None:
            return Outcome("held", f"{again} call{'s' * (again != 1)} made twice")
        return broken(
            "the same training when the model is called twice in each evaluation",
            f"{said_of(apart.part)} in update {apart.update} ({apart.what})",
            apart.where,
            apart.update,
        )
