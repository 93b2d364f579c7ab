from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.weights.observations.casts import CastsUsed


class CastBeforeUpdate(Check):
    """Autocast still uses the weights from before the latest updates, because all of them are made within one block.

    ## Why is this a bug?
    Autocast casts each weight to half precision once, and keeps the copy until its outermost block is left. Within the
    block, an optimizer step changes the weight and not the copy: every further forward pass, and every gradient, is
    that of the model as it was when the block was entered. With several updates in one block, the first one is made
    again and again.

    ## What to do
    Enter torch.autocast for each forward pass and loss, and leave it before loss.backward() and optimizer.step().

    Where the loop must stay inside, torch.autocast(..., cache_enabled=False) casts the weights each time.

    ## When it is right
    A block without an update inside, as in most loops, or with cache_enabled=False. Weights that are in half precision
    already, or that are not trained, are not copied.

    ## References
    - https://docs.pytorch.org/docs/stable/amp.html#torch.autocast
    """

    new_since = "0.4.0"

    def judge(self, fact: CastsUsed) -> Verdict:
        if not fact.stale:
            return HELD
        return Found(
            expected="a forward pass with the weights that the latest update left",
            observed=f"{fact.stale} update{'s' * (fact.stale != 1)} since autocast was entered, which keeps its copies "
            "of the weights until it is left",
        )
