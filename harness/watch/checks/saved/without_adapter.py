from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.saved_states import SavedStates
from harness.watch.monitor import Monitor


class WithoutAdapter(Check):
    """The base of an adapter is saved as it was, and what was trained, the adapter, is saved nowhere.

    ## Why is this a bug?
    The updates changed the adapter alone. `unload()` removes it and returns the base, and `get_base_model()` returns
    the model behind it; a file of either holds the checkpoint that the training began with.

    ## What to do
    Save the adapter (`save_pretrained` of the PeftModel), or what `merge_and_unload()` returns; `unload()` returns the
    base without it.

    ## When it is right
    A base that is saved alongside its adapter, or into which the adapter was merged, is not reported.
    """

    needs = "model with adapters that is saved"
    formerly = ("saved::not-what-was-trained", "saved::is-what-was-trained")
    explains = ("saved::not-what-was-trained", "saved::not-what-was-evaluated", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.states = monitor.fact(SavedStates)

    def on_end(self, event: End) -> None:
        if not self.monitor.complete:
            return
        for number in {each.of for each in self.states.saves}:
            saves = [each for each in self.states.saves if each.of == number]
            self.looked |= bool(self.states.trained[number].base)
            if all(each.is_base for each in saves):
                self.found(
                    expected="what the adapters have learnt, in what is saved",
                    observed=f"the base of {self.states.trained[number].name} as it was, without its adapters, which "
                    "are saved nowhere",
                    where=saves[-1].where,
                    update=saves[-1].updates_made,
                )
