from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Backward


class OfEarlierForward(Check):
    """The loss that is differentiated comes from the forward pass of an earlier batch.

    ## Why is this a bug?
    A loss that is kept from the previous batch moves the parameters by the gradients of an earlier model. The loss of
    the current batch moves nothing: it is computed in vain.

    ## What to do
    Call `backward()` on the loss of the forward that was just made.

    ## When it is right
    Window losses that are kept and differentiated together with the current one are not reported.
    """

    needs = "backward pass of a batch of a DataLoader"
    in_windows = "first"
    formerly = ("loss::of-another-batch", "loss::of-the-batch")

    def on_backward(self, event: Backward) -> None:
        if event.batch is None or not event.reached or event.inside_step:
            return
        self.looked = True
        numbers = {forward.number for forward in event.forwards if forward.gradients}
        if numbers and not numbers & event.reached and max(event.reached) < min(numbers):
            self.found(
                expected="the loss of the batch at hand",
                observed="the loss that is differentiated comes from an earlier batch's forward pass",
                where=event.where,
                update=self.monitor.update,
            )
