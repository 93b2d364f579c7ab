"""The forward passes that a loss comes from."""

from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.events import Backward
from harness.watch.facts.graphs import ForwardsDifferentiated


class DifferentiatedAgain(Check):
    """A backward pass goes through the forward passes of earlier batches again.

    ## Why is this a bug?
    Suppose a loss adds up over batches and is differentiated for each of them, with `retain_graph=True`. The first
    batch then gets as many gradients as there are batches, and all but the first come after the model has changed. The
    graphs of all batches stay in memory.

    ## What to do
    Call `backward()` on each batch's loss alone, without `retain_graph`: gradients add up anyway.

    ## When it is right
    Losses of several forwards of one batch, and window losses that are kept and differentiated once, are not reported.
    """

    explains = ("loss::of-earlier-forward",)

    def judge(self, fact: ForwardsDifferentiated) -> Verdict:
        if not fact.again or not fact.at.sampled:
            return HELD
        return Found(
            expected="backward() on the loss of the current batch alone",
            observed=f"backward() again goes through {fact.again} forward pass{'es' * (fact.again > 1)} of earlier "
            "batches",
        )


class OfEarlierForward(Check):
    """`backward()` is called on a loss from the forward pass of an earlier batch.

    ## Why is this a bug?
    A loss that is kept from the previous batch moves the parameters by the gradients of an earlier model. The loss of
    the current batch moves nothing: it is computed in vain.

    ## What to do
    Call `backward()` on the loss of the current batch.

    ## When it is right
    Window losses that are kept and differentiated together with the current one are not reported.
    """

    needs = "backward pass of a batch of a DataLoader"
    in_windows = "first"

    def judge(self, event: Backward) -> Verdict:
        if event.batch is None or not event.reached or event.inside_step:
            return NOTHING_TO_JUDGE
        numbers = {forward.number for forward in event.forwards if forward.gradients}
        if not numbers or numbers & event.reached or max(event.reached) >= min(numbers):
            return HELD
        return Found(
            expected="backward() on the loss of the current batch",
            observed="the loss comes from an earlier batch's forward pass",
        )
