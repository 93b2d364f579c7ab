from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Batch, StepBegins, TrainerMade
from harness.watch.facts.gradient_ledger import Contribution, GradientLedger, Window
from harness.watch.facts.losses import NEAR
from harness.watch.monitor import Monitor

MOST_OPERATIONS = 8
"""Operations to go back from what is differentiated to the mean: Trainer and Accelerate make two, a script its own."""

MEANS = (
    "MeanBackward",
    "NllLossBackward",
    "MseLossBackward",
    "BinaryCrossEntropy",
    "SmoothL1LossBackward",
    "HuberLossBackward",
)
"""Operations that make a mean, unless they were told to make a sum."""

MEAN = 1
"""What torch calls that reduction in an operation."""

COUNT = "num_items_in_batch"
"""How Trainer hands the number of targets of a whole window to a loss, which it then does not divide."""


class AccumulationUnscaled(Check):
    """The losses of accumulated micro-batches are not scaled so that they add up to the mean over their window.

    ## Why is this a bug?
    Gradients add up. Four micro-batches whose losses are not divided by four give gradients four times as large as one
    batch of the same rows would: the effective learning rate is not the one that was set, and clipping cuts more.

    ## What to do
    Divide each micro-batch's loss by the number of micro-batches of its window before its backward pass (Accelerate:
    gradient_accumulation_steps and accelerator.backward do it). Since transformers 4.46, Trainer leaves that to the
    loss: `compute_loss` and `compute_loss_func` get `num_items_in_batch`, the number of targets of the window, and
    divide a sum by it. One that returns a mean and never reads it trains with gradients that are too large by the
    number of micro-batches.

    ## When it is right
    Losses that are summed over rows or tokens and divided once for the whole window, even by hand after the last
    backward pass, are not reported. Neither is a window that the end of an epoch cuts short. Several losses of one
    update, each with a backward pass of its own (real and fake rows, the heads of a model, its tasks; graphs or
    episodes of different sizes), are not micro-batches: they are meant to be added.

    ## References
    - https://github.com/huggingface/transformers/issues/47688
    - https://github.com/huggingface/transformers/issues/43651
    - https://github.com/huggingface/transformers/pull/34198
    """

    id = "gradients::accumulation-unscaled"
    needs = "accumulation over batches of a DataLoader"
    in_windows = "first"
    formerly = ("gradients::accumulation-scaled",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)
        self.window_sizes: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self.asked = 1
        """Micro-batches for an update that the latest Trainer was asked for."""
        self.countless: Callable[..., Any] | None = None
        """Its loss function of the user's own that never reads how many targets a window has."""
        self.undivided = False
        """Whether the latest backward pass was of a mean that nobody divided."""

    def on_trainer_made(self, event: TrainerMade) -> None:
        self.asked = getattr(event.trainer.args, "gradient_accumulation_steps", 1)
        given = getattr(event.trainer, "compute_loss_func", None), type(event.trainer).compute_loss
        own = next((inspect.unwrap(each) for each in given if each is not None), None)
        code = getattr(own, "__code__", None)
        users = code is not None and self.monitor.locator.is_users_file(code.co_filename)
        self.countless = own if users and own is not None and _never_reads_the_count(own) else None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.countless is not None and self.monitor.is_sampled():
            self.undivided = _is_undivided_mean(event.root, self.asked)

    def on_step_begins(self, event: StepBegins) -> None:
        window = self.gradients.window
        if window is None or window.empty:
            return
        shares = self._shares(window, event)
        self.looked |= bool(shares) or (self.countless is not None and len(window.fresh) == self.asked > 1)
        if self.countless is not None and self.undivided and len(window.fresh) == self.asked > 1:
            code = self.countless.__code__
            self.found(
                expected=f"losses divided for the {self.asked} micro-batches of an update",
                observed=f"`{code.co_name}` returns a mean and never reads `{COUNT}`, and Trainer does not divide what "
                f"it returns: the gradients are {self.asked} times as large as those of one batch",
                where=self.monitor.locator.shown((code.co_filename, code.co_firstlineno)),
                update=event.update,
                hint=f"Sum the loss over the targets and divide it by `{COUNT}` where it is not None, or set "
                "`loss_is_scaled_for_ga = False` where Trainer has it.",
            )
            return
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


def _never_reads_the_count(function: Callable[..., Any]) -> bool:
    """Whether neither the count, the keywords that hold it nor the number of micro-batches are read in a function."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False
    keywords = {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD}
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return not {COUNT, "locals", *keywords} & read and not any("accumulation" in each for each in attributes | read)


def _is_undivided_mean(root: torch.Tensor, asked: int) -> bool:
    """Whether a mean is differentiated that no factor beside it makes the micro-batches' part of their window.

    A sum is none, nor is what cannot be followed.
    """
    node, factor = root.grad_fn, 1.0
    for _ in range(MOST_OPERATIONS):
        name = type(node).__name__
        if name.startswith(MEANS):
            return bool(getattr(node, "_saved_reduction", MEAN) == MEAN)
        divides = name.startswith("DivBackward")
        other = getattr(node, "_saved_other", None) if divides or name.startswith("MulBackward") else None
        if node is None or not isinstance(other, torch.Tensor) or other.numel() != 1 or not other.item():
            return False
        node = node.next_functions[0][0]
        if divides and type(node).__name__.startswith("SumBackward"):
            return True
        factor *= 1 / other.item() if divides else other.item()
        if abs(factor * asked - 1) <= NEAR:
            return False
    return False
