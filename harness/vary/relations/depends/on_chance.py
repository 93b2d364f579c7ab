from __future__ import annotations

from harness.vary.differences import Run
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks


class OnChance(Relation):
    """In an evaluation, the model gives different outputs for the same rows when it is called again.

    ## Why is this a bug?
    The number that the script reports is one of many that it might have reported. If dropout stays on in an evaluation,
    the number is also worse than the model deserves, and it cannot be used to compare two models.

    ## What to do
    Call `model.eval()` before the evaluation. Draw augmentation and noise only `if self.training`.

    ## When it is right
    Models that sample on purpose: variational autoencoders, policies, dropout as an estimate of uncertainty.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout.html
    """

    new_since = "0.4.0"
    severity = "warning"
    kind = "evaluated twice"
    tries = "call the model twice in each evaluation"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        return cls.of_loaders(()) if tried.evaluated else "no DataLoader is used for evaluations alone"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        account = other.account
        if not account.asked_again:
            return lacks("no call of a model without gradients could be repeated")
        if not account.otherwise:
            return HELD
        return broken(
            "the same outputs for the same rows",
            f"{account.otherwise} of {account.asked_again} calls give different outputs when repeated",
            account.otherwise_at,
        )
