from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness import launch
from harness.torch_objects import checksum, held_by
from harness.watch.check import Check
from harness.watch.events import Step
from harness.watch.monitor import ALWAYS_SAMPLED, Monitor


class WeightsDiffer(Check):
    """Processes that train one model have different weights after an update.

    ## Why is this a bug?
    Each process then trains a model of its own, on its part of the rows; only the first one's is saved in the end, and
    the other processes have worked for nothing. The printed losses look as they always do.

    ## What to do
    Call the model that prepare() or DistributedDataParallel returned, not the one inside; start from the same seed or
    checkpoint; clip and step on all ranks alike.

    ## When it is right
    Processes that were started together and never join a process group, such as the trials of a search, are not
    compared.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/ddp.html
    - https://github.com/deepspeedai/DeepSpeed/issues/1801
    """

    needs = "second process"
    formerly = ("ranks::same-weights",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.weights: dict[str, tuple[int, str | None]] = {}
        """By the number of the update, their checksum and where it was made."""

    def on_step(self, event: Step) -> None:
        if event.update <= ALWAYS_SAMPLED and launch.in_process_group():
            self.weights[str(event.update)] = checksum(held_by(event.optimizer)), event.where

    def summary(self) -> dict[str, tuple[int, str | None]]:
        return self.weights

    def compare(self, summaries: Sequence[Mapping[str, Sequence[int]] | None]) -> None:
        self.looked = bool(self.weights)
        for update, (own, where) in self.weights.items():
            values = [own if each is None or update not in each else each[update][0] for each in summaries]
            if len(set(values)) > 1:
                self.found(
                    expected="the same weights on every rank",
                    observed=f"they differ between the {len(values)} ranks",
                    where=where,
                    update=int(update),
                )
                return
