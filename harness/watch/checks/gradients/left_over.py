from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import StepBegins
from harness.watch.facts.gradient_ledger import GradientLedger, Window
from harness.watch.monitor import Monitor

MIN_WINDOWS = 2
"""Windows of one size within an epoch from which on it is the size that is meant. Half or double of it changes verdicts
(docs/detection.md)."""


@dataclass
class Windows:
    """Those of an optimizer that lie within a pass and are not its first."""

    size: int
    number: int = 1
    differ: bool = False


class LeftOver(Check):
    """Micro-batches that an epoch's last, unfilled window leaves over are added to an update of the next epoch.

    ## Why is this a bug?
    If the script counts the batches from 0 again in each epoch, the last of them may not fill a window. Their gradients
    stay, and the next epoch's first update contains more micro-batches than each loss was divided by, or different
    ones. After the last epoch they are never used.

    ## What to do
    Make a step for the last batch of an epoch too: if (i + 1) % n == 0 or i + 1 == len(loader).

    ## When it is right
    Windows that continue across the end of an epoch, because updates are counted over the whole training, have the same
    size everywhere and are not reported. Neither are windows whose sizes differ within an epoch (the same number of
    tokens in each).

    ## References
    - https://github.com/huggingface/accelerate/issues/1847
    """

    id = "gradients::left-over"
    needs = "accumulation over batches of a DataLoader"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)
        self.windows: WeakKeyDictionary[Optimizer, Windows] = WeakKeyDictionary()

    def on_step_begins(self, event: StepBegins) -> None:
        window, of = self.gradients.window, None if event.batch is None else event.batch.of
        if window is None or not window.fresh or window.empty or of is None:
            return
        usual = self.windows.get(event.optimizer)
        size = len(window.fresh)
        self.looked |= usual is not None and usual.number >= MIN_WINDOWS and usual.size > 1 and not of.updates
        if self._goes_on(window):
            if usual is not None and self._is_left_over(usual, size):
                first = sum(entry.of is not of for entry in window.fresh)
                self.found(
                    expected=f"updates of {usual.size} micro-batches, as the others are",
                    observed=f"one of {size}: {first} that the epoch before left over, and {size - first} of this one",
                    where=event.where,
                    update=event.update,
                )
        elif usual is None and of.updates:
            self.windows[event.optimizer] = Windows(size)
        elif usual is not None and of.updates:
            usual.number += 1
            usual.differ = usual.differ or size != usual.size

    def _is_left_over(self, usual: Windows, size: int) -> bool:
        return usual.number >= MIN_WINDOWS and usual.size > 1 and not usual.differ and size != usual.size

    def _goes_on(self, window: Window) -> bool:
        """Whether a window began in the pass before, which was not shortened."""
        passes = {entry.of for entry in window.fresh}
        first = window.fresh[0].of
        same_loader = len({each.loader for each in passes if each is not None}) == 1
        return len(passes) == 2 and first is not None and None not in passes and same_loader and not first.shortened
