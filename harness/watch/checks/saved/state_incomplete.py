from __future__ import annotations

from collections import defaultdict

from harness import launch
from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.saved_states import SavedStates, Trained
from harness.watch.monitor import Monitor

SHOWN = 4
"""Names that are said."""


class StateIncomplete(Check):
    """A state that is saved after the training lacks tensors that the training changed.

    ## Why is this a bug?
    The running statistics of batch normalization are buffers, and no parameters: a state made from
    `named_parameters()`, or from what has gradients, is without them. And a filter by name lets go what it was not
    meant for, layer 10 with layer 1. Loading with `strict=False` is silent about it, and the model then has the
    statistics, or the layers, that it was made with.

    ## What to do
    Save `model.state_dict()`, or compare the names of what you save with it.

    ## When it is right
    A part on purpose: a module alone (an encoder without its head), all that has gradients where no buffer changes, the
    last of several blocks. What several files have together counts together. Statistics that each client of a federated
    training keeps for itself are reported: ignore it there.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    id = "saved::state-incomplete"
    status = "new"
    needs = "state saved after updates"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.states = monitor.fact(SavedStates)

    def on_end(self, event: End) -> None:
        if not launch.is_main_process():
            return
        for number, trained in self.states.trained.items():
            saves = [each for each in self.states.saves if each.of == number]
            if not saves:
                continue
            self.looked = True
            latest = [each for each in saves if each.updates_made == saves[-1].updates_made]
            saved = frozenset[str]().union(*(each.has for each in latest))
            lacking = sorted(trained.changed - saved) if trained.trainable <= saved else _alike(trained, saved)
            if lacking:
                what = "buffers that the training changed" if trained.trainable <= saved else "trained tensors"
                more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
                self.found(
                    expected=f"all of {trained.name} that the training changed",
                    observed=f"{len(lacking)} {what} are not in what is saved: {', '.join(lacking[:SHOWN])}{more}",
                    where=latest[-1].where,
                    update=latest[-1].updates_made,
                )


def _alike(trained: Trained, saved: frozenset[str]) -> list[str]:
    """What is not saved, of tensors whose names differ from those of saved ones in the numbers of blocks only."""
    blocks: dict[str, list[tuple[tuple[int, ...], str]]] = defaultdict(list)
    for name in trained.trainable:
        parts = name.split(".")
        numbers = tuple(int(each) for each in parts if each.isdigit())
        blocks[".".join("#" if each.isdigit() else each for each in parts)].append((numbers, name))
    lacking = []
    for alike in blocks.values():
        names = [name for _, name in sorted(alike)]
        has = [name in saved for name in names]
        if any(has) and has != sorted(has):  # the last blocks alone are a choice that is often made
            lacking += [name for name in names if name not in saved]
    return sorted(lacking)
