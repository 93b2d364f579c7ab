from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import SignedLoss


class TargetsNotSigns(Check):
    """The targets of a loss that takes 1 and -1 are 0 and 1, so that those of 0 are not what they should be.

    ## Why is this a bug?
    `margin_ranking_loss` multiplies the difference of two scores by the target: with 0 the pair adds the margin and has
    no gradient. `soft_margin_loss` gives log 2 for each of these rows, `cosine_embedding_loss` takes only 1 and -1, and
    `hinge_embedding_loss` adds both of its branches for any other target.

    ## What to do
    Give it `2 * labels - 1`.

    ## When it is right
    Targets that include a -1 are not reported, nor are targets that are all 1.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MarginRankingLoss.html
    """

    status = "new"
    needs = "loss of signed targets"
    in_windows = "first"

    def on_signed_loss(self, event: SignedLoss) -> None:
        if not self.monitor.is_sampled() or not event.target.numel():
            return
        self.looked = True
        target = event.target.detach()
        zeros = int((target == 0).sum())
        if zeros and bool(((target == 0) | (target == 1)).all()):
            self.found(
                expected="targets of 1 and -1",
                observed=f"{event.function} is given 0 in {zeros} of {target.numel()} targets, and never -1",
                where=event.where,
                update=self.monitor.update,
            )
