from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.facts.gradient_ledger import GradientsUnscaled, GradientsUsed


class NotScaled(Check):
    """A GradScaler divides the gradients of a loss that it did not multiply.

    ## Why is this a bug?
    `scaler.scale(loss)` multiplies the loss, by 65536 at first, and `scaler.step(optimizer)` divides the gradients by
    the same factor. If the script calls `backward()` on the loss itself, they are only divided: the updates of SGD
    vanish, and those of Adam are lost in its epsilon.

    ## What to do
    Call backward() on what scaler.scale(loss) returns: scaler.scale(loss).backward().

    ## When it is right
    A scaler that is switched off (`enabled=False`) divides nothing and is not reported. Neither are gradients if some
    of their backward passes were scaled.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    explains = ("update::not-as-defined",)

    def judge(self, fact: GradientsUnscaled) -> Verdict:
        if fact.multiplied:
            return HELD
        return Found(
            expected="a loss that scaler.scale() multiplied, because the GradScaler divides its gradients",
            observed="the loss was not scaled, so dividing makes every gradient thousands of times too small",
        )


class NotUnscaled(Check):
    """An update uses gradients that are still multiplied by the GradScaler's factor.

    ## Why is this a bug?
    `scaler.scale(loss)` multiplies the loss, by 65536 at first, and with it the gradients. `scaler.step(optimizer)`
    divides them again and skips an update whose gradients are infinite. If the script calls `optimizer.step()` instead,
    they are thousands of times too large, and no update is skipped.

    ## What to do
    Call scaler.step(optimizer) instead of optimizer.step(), and scaler.update() after it.

    ## When it is right
    Gradients that the script divides itself before the step, and a scaler that is switched off (`enabled=False`), are
    not reported. Neither are optimizers that handle the scale themselves (`grad_scale` of fused ones).

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    needs = "GradScaler"
    explains = ("update::not-as-defined",)

    def judge(self, fact: GradientsUsed) -> Verdict:
        if fact.scale == "none":
            return NOTHING_TO_JUDGE
        if fact.scale == "taken out":
            return HELD
        return Found(
            expected="unscaled gradients in the update",
            observed="the gradients are still multiplied by the GradScaler's factor: optimizer.step() was called, not "
            "scaler.step(optimizer)",
        )
