from __future__ import annotations

from torch import nn

from harness import launch
from harness.watch.check import Check
from harness.watch.events import End, Load, OptimizerMade
from harness.watch.facts.saved_states import SavedStates
from harness.watch.monitor import Monitor


class BeforeLastUpdates(Check):
    """A model is saved after one stage of its training, trained on in another, and not saved again.

    ## Why is this a bug?
    What the last stage taught is gone when the script ends: the file has the model as it was before that stage.

    ## What to do
    Save the model when its last stage is over, to a folder of its own.

    ## When it is right
    A second stage that only measures something, such as how fast the model learns another task. A state that is kept as
    the best of several evaluations is not reported, nor is a model that gets another state in between.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    status = "new"
    needs = "model that is trained in several stages and saved"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.states = monitor.fact(SavedStates)
        self.begun: set[int] = set()
        """After how many updates an optimizer was made."""

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        self.begun.add(self.monitor.updates_made)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self.begun.clear()

    def on_end(self, event: End) -> None:
        if not self.monitor.complete or not launch.is_main_process():
            return
        for number, trained in self.states.trained.items():
            saves = [each for each in self.states.saves if each.of == number and each.has]
            made = {each.updates_made for each in saves}
            self.looked |= bool(made) and len(self.begun) > 1
            if len(made) == 1 and made <= self.begun and trained.updates_made > max(made) + 1:
                self.found(
                    expected="the model saved when the last stage of its training is over",
                    observed=f"{trained.name} is saved after {max(made)} updates, trained on until update "
                    f"{trained.updates_made + 1} with an optimizer that is made after that, and not saved again",
                    where=saves[-1].where,
                    update=max(made),
                )
