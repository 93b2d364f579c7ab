from __future__ import annotations

from harness.findings import count
from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.facts.tensor_updates import TensorsUpdated


class Unchanged(Check):
    """The optimizer's step does not change parameters that have a gradient and a learning rate.

    ## Why is this a bug?
    If something that does nothing replaces `optimizer.step()`, or something sets the parameters back within the step,
    the model stays as it was.

    ## What to do
    Check whether something replaces or wraps optimizer.step(), or sets the parameters back.

    ## When it is right
    A learning rate so small that a float32 number does not change by it, as in the first step of a warmup, is not
    reported. Neither are updates that a GradScaler skips.
    """

    explains = ("gradients::lost", "optimizer::missing-parameters")

    def judge(self, fact: TensorsUpdated) -> Verdict:
        due = [tensor for tensor in fact.tensors if tensor.due]
        if not due:
            return NOTHING_TO_JUDGE
        still = next((tensor for tensor in due if not tensor.changed), None)
        if still is None:
            return Held(f"{count(len(due), 'tensor')} changed in an update by {fact.optimizer}")
        return Found(
            expected=f"a changed parameter, because it has a gradient and a learning rate of {still.lr:.3g}",
            observed=f"{still.name} is the same after optimizer.step() as before",
        )
