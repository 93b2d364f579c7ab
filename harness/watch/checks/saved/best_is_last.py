from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Save
from harness.watch.facts.saved_states import SavedStates
from harness.watch.monitor import Monitor


class BestIsLast(Check):
    """A state that was kept for later is saved after further updates, and went along with them: it is the last one.

    ## Why is this a bug?
    `best = model.state_dict()` is not a copy: its tensors are the model's, and every update changes them. What is saved
    as the best is what the training ended with.

    ## What to do
    Keep `copy.deepcopy(model.state_dict())`, or save it at once.

    ## When it is right
    A state that is taken before the first update, in order to be saved as it is at the end, is not reported.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    status = "new"
    needs = "state that was kept and saved later"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.states = monitor.fact(SavedStates)

    def on_save(self, event: Save) -> None:
        for saved in self.states.latest:
            self.looked = True
            if saved.asked is None or not saved.asked.updates_made:
                continue
            self.found(
                expected="the weights as they were when the state was kept",
                observed=f"the state that was kept after {saved.asked.updates_made} updates shares its memory with the "
                f"model: it is saved as it is after {saved.updates_made}",
                where=saved.asked.where,
                update=saved.updates_made,
            )
