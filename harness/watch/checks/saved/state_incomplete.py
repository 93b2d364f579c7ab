from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from harness import launch
from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.parameters import names
from harness.watch.facts.saved_states import SavedState, SavedStates, Trained
from harness.watch.monitor import Monitor

ADAPTED = "modules_to_save."
"""In the names of what is trained whole beside an adapter, and belongs to it."""


class StateIncomplete(Check):
    """A state that is saved after the training lacks tensors that the training changed, or has others' values in them.

    ## Why is this a bug?
    The running statistics of batch normalization are buffers, not parameters: a state made from `named_parameters()`,
    or from what has gradients, lacks them. A filter by name also drops what it was not meant for: layer 10 with layer
    1, the biases with the masks. Loading with `strict=False` is silent about it, and the model then has the statistics,
    or the layers, that it was made with. An average of weights has the statistics from before the training until
    `update_bn` has been called. Values that are too large for half precision become infinite.

    ## What to do
    Save `model.state_dict()`, or compare the names of what you save with it. Call
    `torch.optim.swa_utils.update_bn(loader, average)` before an average is saved, or make it with `use_buffers=True`.

    ## When it is right
    Saving only a part on purpose: only some modules (an encoder without its head), or everything that has gradients
    when no buffer changes. The contents of several files count together. Statistics that each client in federated
    learning keeps for itself are reported: ignore the finding there.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    status = "new"
    needs = "state saved after updates"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.states = monitor.fact(SavedStates)

    def on_end(self, event: End) -> None:
        if not launch.is_main_process():
            return
        for number, trained in self.states.trained.items():
            saves = [each for each in self.states.saves if each.of == number and not each.is_base]
            if not any(each.has for each in saves):
                continue
            self.looked = True
            latest = [each for each in saves if each.updates_made == saves[-1].updates_made]
            saved = frozenset[str]().union(*(each.has for each in latest))
            infinite = frozenset[str]().union(*(each.not_finite for each in latest))
            stale = frozenset[str]().union(*(each.stale for each in latest))
            self._report(latest[-1], _lacking(trained, saved), "that the training changed are not in what is saved")
            self._report(latest[-1], infinite, "have values that are not finite in what is saved")
            self._report(latest[-1], stale, "have the values of before the training in what is saved")

    def _report(self, saved: SavedState, tensors: Iterable[str], observed: str) -> None:
        lacking = sorted(tensors)
        if lacking:
            self.found(
                expected=f"all that the training changed of {self.states.trained[saved.of].name}",
                observed=f"{len(lacking)} tensors {observed}: {names(lacking)}",
                where=saved.where,
                update=saved.updates_made,
            )


def _lacking(trained: Trained, saved: frozenset[str]) -> set[str]:
    """What is not saved, of tensors that would be if this were a part on purpose: modules alone.

    Some tensors of a module, some of several blocks that are alike, or what adapters leave to be trained whole.
    """
    if trained.trainable <= saved:
        return trained.changed - saved
    modules = {name.rpartition(".")[0] for name in saved}
    lacking = {name for name in trained.trainable - saved if name.rpartition(".")[0] in modules or ADAPTED in name}
    blocks: dict[str, set[str]] = defaultdict(set)
    for name in trained.trainable:
        blocks[".".join("#" if each.isdigit() else each for each in name.split("."))].add(name)
    for alike in blocks.values():
        lacking |= alike - saved if alike & saved else set()
    return lacking
