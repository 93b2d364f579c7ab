from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.ascent import Ascent
from harness.watch.monitor import Monitor


class Maximizes(Check):
    """The optimizer makes the loss larger: it was made with `maximize=True`.

    ## Why is this a bug?
    With `maximize=True` an optimizer climbs the gradient, for objectives that should grow. With a loss, each update
    makes the model worse at its task, quickly and without an error.

    ## What to do
    Leave out maximize=True: it is for objectives that are to grow.

    ## When it is right
    The option is for objectives that are not a loss function's value, such as a reward or a likelihood, and for the
    negative of a loss; these are not reported. If other updates do go down, those that climb may belong to an adversary
    or a Lagrange multiplier; an optimizer that searches for a model's input, such as an adversarial image, may climb
    too.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    needs = "backward pass of a loss"
    in_windows = "first"
    formerly = ("update::ascends", "update::descends")
    explains = ("gradients::accumulation-unscaled",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.ascent = monitor.fact(Ascent)

    def on_end(self, event: End) -> None:
        self.looked = self.ascent.looked
        climb = self.ascent.climb()
        if climb is not None and climb.maximizes:
            self.found(
                expected="maximize=False, because a loss is differentiated",
                observed="the optimizer climbs: maximize=True",
                where=climb.where,
                update=climb.update,
            )
