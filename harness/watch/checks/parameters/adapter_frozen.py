from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.adapters import Adapters, names
from harness.watch.monitor import Monitor


class AdapterFrozen(Check):
    """The adapter that the optimizer holds is frozen in all passes of the training.

    ## Why is this a bug?
    `PeftModel.from_pretrained` freezes what it loads, for use and not for training. An optimizer accepts frozen tensors
    without a word and leaves them as they are: the adapter is saved as it was loaded, and only what is around it, such
    as a new head, is trained.

    ## What to do
    Load it with `PeftModel.from_pretrained(..., is_trainable=True)`.

    ## When it is right
    A frozen adapter that the optimizer does not hold is not reported: it is there to be used. Neither is one that gets
    gradients in any pass of the training.

    ## References
    - https://huggingface.co/docs/peft/package_reference/peft_model#peft.PeftModel.from_pretrained
    """

    status = "new"
    needs = "adapter that an optimizer holds"
    formerly = ("parameters::adapter-untrained",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.adapters = monitor.fact(Adapters)

    def on_end(self, event: End) -> None:
        if not self.monitor.complete:
            return
        for number in self.adapters.made:
            trained = self.adapters.held.get(number, set()) & self.adapters.active[number]
            self.looked |= bool(trained)
            if trained and not self.adapters.trainable.get(number):
                self.found(
                    expected="gradients for the adapter that the optimizer holds",
                    observed=f"the adapter {names(trained)} is frozen in all passes: it stays as it was loaded",
                    where=self.adapters.where,
                )
