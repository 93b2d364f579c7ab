from __future__ import annotations

from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import Batch, StepBegins
from harness.watch.facts.gradient_ledger import Contribution, GradientLedger, Window
from harness.watch.facts.losses import NEAR
from harness.watch.monitor import Monitor


class AccumulationUnscaled(Check):
    """The losses of accumulated micro-batches are not scaled so that they add up to the mean over their window.

    ## Why is this a bug?
    Gradients add up. Four micro-batches whose losses are not divided by four make gradients four times as large as the
    batch of the same rows would: the learning rate is another one than the one that was set, and clipping cuts more.

    ## What to do
    Divide each micro-batch's loss by the number of micro-batches of its window before its backward pass (Accelerate:
    gradient_accumulation_steps and accelerator.backward do it).

    ## When it is right
    Losses that are summed over rows or tokens and divided once for the whole window, by hand after the last backward
    pass too, are not reported; nor is a window that the end of an epoch cuts short. Several losses of one update that
    have a backward pass each (real and fake rows, the heads of a model, its tasks; graphs or episodes of different
    sizes) are no micro-batches: they are meant to be added.

    ## References
    - https://github.com/huggingface/transformers/issues/47688
    - https://github.com/huggingface/transformers/issues/43651
    """

    id = "gradients::accumulation-unscaled"
    needs = "accumulation over batches of a DataLoader"
    in_windows = "first"
    formerly = ("gradients::accumulation-scaled",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)
        self.window_sizes: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()

    def on_step_begins(self, event: StepBegins) -> None:
        window = self.gradients.window
        if window is None or window.empty:
            return
        self.looked |= len(window.fresh) > 1
        shares = self._shares(window, event)
        if not shares or shares[0] <= 0:  # a loss of another sign is another check's
            return
        size, first = len(shares), shares[0]
        total = sum(shares) / _divided_by_hand(window)
        alike = all(abs(share - first) <= NEAR * abs(first) for share in shares)
        whole = 1 / first
        mixed = all(min(abs(share - 1), abs(share * size - 1)) <= NEAR for share in shares)
        if (not alike and not mixed) or abs(whole - round(whole)) > NEAR * abs(whole) or abs(total - 1) <= 2 * NEAR:
            return
        divided = f"each is divided by {round(whole)}" if round(whole) > 1 else "none is divided"
        how = divided if alike else "some are divided, others are not"
        self.found(
            expected=f"losses divided by {size}, because {size} micro-batches are added up for an update",
            observed=f"{how}, so the gradients are {total:.4g} times the mean's",
            where=window.fresh[-1].where,
            update=event.update,
            hint=f"Divide each micro-batch's loss by {size} only once, by hand or by accelerator.backward, which "
            "does it where gradient_accumulation_steps is given."
            if round(whole) == size * size
            else f"Divide each micro-batch's loss by {size} before its backward pass"
            " (Accelerate: gradient_accumulation_steps and accelerator.backward do it).",
        )

    def _shares(self, window: Window, event: StepBegins) -> list[float]:
        """What part of its batch's mean loss each backward pass was of; empty where that is not known or not meant."""
        size = len(window.fresh)
        shares = [entry.share for entry in window.fresh if entry.share is not None]
        if size < 2 or len(shares) < size or not self._are_micro_batches(window.fresh, event.batch):
            return []
        usual = max(size, self.window_sizes.get(event.optimizer, 0))
        self.window_sizes[event.optimizer] = usual
        if size < usual or any(entry.number in self.gradients.cut for entry in window.fresh):
            return []  # the end of an epoch cut it short
        return shares

    def _are_micro_batches(self, entries: list[Contribution], batch: Batch | None) -> bool:
        """Whether backward passes are of the same loss for different rows, and not of several losses of one update."""
        size, inputs = len(entries), {entry.batch for entry in entries}
        one_kind = len({entry.models for entry in entries}) == len({entry.of for entry in entries}) == 1
        if not one_kind or None in inputs or len(inputs) < size:
            return False
        if batch is not None:
            return batch.of.pending >= size
        # Rows that the script makes itself are of one loss if one line is repeated for them; two networks have more.
        # And there are as many each time: graphs and episodes have their own sizes.
        sizes = {entry.batch[0] if isinstance(entry.batch, tuple) else None for entry in entries}
        return len({entry.stack for entry in entries}) == len(self.gradients.ledgers) == len(sizes) == 1


def _divided_by_hand(window: Window) -> float:
    """The factor by which gradients shrank after the last backward pass, where it is one for all of them."""
    if window.clipped is not None:
        return 1.0
    for probe, after in zip(window.ledger.probes, window.ledger.after, strict=True):
        if after is not None and probe.grad is not None and (norm := probe.grad.norm().item()):
            return float(after.norm().item() / norm)
    return 1.0
