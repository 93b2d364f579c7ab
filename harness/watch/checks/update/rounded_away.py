from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Step
from harness.watch.facts.tensor_updates import TensorUpdates
from harness.watch.monitor import Monitor


class RoundedAway(Check):
    """Updates are lost to the rounding of the parameters' precision.

    ## Why is this a bug?
    A bfloat16 number has 8 significant bits: what is added to it is lost if it is smaller than about a 512th of it. At
    fine-tuning learning rates, most changes are that small. Those elements stay as they are, however long the training.

    ## What to do
    Keep the weights in float32 (dtype=torch.float32) and use autocast for the computation.

    transformers 5 loads a checkpoint in the precision that it was saved in, unless `dtype` says otherwise.

    ## When it is right
    Low precision weights whose updates mostly arrive, because the learning rate is large, are not reported. Optimizers
    other than torch's AdamW, Adam and SGD, such as those with stochastic rounding, are not looked at.

    ## References
    - https://github.com/huggingface/transformers/issues/42883
    """

    needs = "update with a gradient and a learning rate"
    in_windows = "all"
    formerly = ("update::not-rounded-away",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.updates = monitor.fact(TensorUpdates)

    def on_step(self, event: Step) -> None:
        share = self.updates.rounded_away
        self.looked |= bool(self.updates.seen)
        if share is None or not self.updates.seen:
            return
        dtype = str(self.updates.seen[0].dtype).removeprefix("torch.")
        self.found(
            expected="parameters in float32, to which small changes can be added",
            observed=f"{share:.0%} of the elements are the same after an update, "
            f"because {dtype} cannot hold the change",
            where=event.where,
            update=event.update,
        )
