from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import StepBegins
from harness.watch.facts.copies import Copies
from harness.watch.monitor import Monitor


class CopySharesMemory(Check):
    """A copy of the network lies in the network's own memory, and moves with every update of it.

    ## Why is this a bug?
    `target.data = online.data` copies nothing: both parameters share one piece of memory from then on. A target network
    that should lag behind is the network itself, and training on it chases its own tail.

    ## What to do
    Write into the copy's memory: `target.data.copy_(online.data)`, or `target.load_state_dict(online.state_dict())`.

    ## When it is right
    One parameter in two modules, such as tied weights, is not reported; only two parameters that share memory are.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html
    """

    status = "new"
    needs = "network of the same build as a trained one"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.copies = monitor.fact(Copies)

    def on_step_begins(self, event: StepBegins) -> None:
        for each in self.copies.all:
            self.looked = True
            if each.shares:
                self.found(
                    expected="a copy with memory of its own",
                    observed=f"{each.shown} and the network have parameters of their own that share one memory: it "
                    "never stays behind",
                    where=each.where,
                    update=event.update,
                )
