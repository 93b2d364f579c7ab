from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.ascent import Ascent
from harness.watch.monitor import Monitor


class Ascends(Check):
    """The updates make the loss larger: its negative is differentiated.

    ## Why is this a bug?
    An optimizer steps against the gradient of what is differentiated. With the sign reversed, each update makes the
    model worse at its task, quickly and without an error.

    ## What to do
    Take out the minus in front of the loss.

    ## When it is right
    A negative objective, such as minus a reward, is not reported unless it is the negative of a loss function's value
    or of the batch's cross-entropy. Neither is one that an optimizer with `maximize=True` climbs. If other updates do
    go down, those that climb may belong to an adversary, to a Lagrange multiplier or to rows that should be unlearned;
    an optimizer that searches for a model's input, such as an adversarial image, may climb as well.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    needs = "backward pass of a loss"
    in_windows = "first"
    formerly = ("update::descends",)
    explains = ("gradients::accumulation-unscaled",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.ascent = monitor.fact(Ascent)

    def on_end(self, event: End) -> None:
        self.looked = self.ascent.looked
        climb = self.ascent.climb()
        if climb is not None and not climb.maximizes:
            self.found(
                expected="the loss itself to be differentiated",
                observed="its negative is, so each update makes the loss larger",
                where=climb.where,
                update=climb.update,
            )
