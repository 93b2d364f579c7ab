"""Micro-batches: the backward passes that an update adds up, and what part of a mean loss each is of."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.watch.bounded import FirstByKey
from harness.watch.events import BackwardBegins, Fact, TrainerMade
from harness.watch.facts.gradient_ledger import GradientLedger, GradientsUsed
from harness.watch.facts.ledger import Contribution, RowsGiven, is_same_quotient
from harness.watch.facts.losses import LOSS_RATIO_RTOL
from harness.watch.recogniser import Recogniser

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

MIN_WINDOWS = 2
"""Windows of one size within an epoch from which on it is the size that is meant. Half or double of it changes verdicts
(scripts/records/margins.json)."""


@dataclass
class WindowCounts:
    """Windows of an optimizer that lie within a pass and are not its first."""

    size: int
    number: int = 1
    differ: bool = False


class MicroBatchesUsed(Fact):
    """An update adds up several micro-batches, of which each loss is known. ``where`` is that of the last backward."""

    needs = "accumulation over batches of a DataLoader"
    in_windows = "first"
    shares: Sequence[float]
    """Share of each backward pass: the differentiated loss divided by the mean loss of its batch."""
    targets: Sequence[int] = ()
    """Number of targets of each backward pass over which that mean is; none where that is not known of all."""
    divided_by_hand: float = 1.0
    """Number by which the gradients of each update are divided after the last of them. What is another number each
    time, as in clipping by hand, or no one number for all gradients, is no such division."""


class SameRowsAdded(Fact):
    """An update adds up backward passes of one line that went through a model with the same rows each time, as all
    before it do. ``where`` is that line."""

    needs = "accumulation over batches"
    times: int
    updates: int
    """So far that did."""


class UncountedLossUsed(Fact):
    """An update of a Trainer adds up micro-batches whose loss the user's own function makes, without asking how many
    targets they have together. ``where`` is that function."""

    in_windows = "first"
    function: str
    """Name of the function."""
    micro_batches: int
    """For an update, as the Trainer was asked for."""
    undivided: bool
    """Whether it is a mean that nobody divides."""


class FirstWindowOfPass(Fact):
    """The first update of a pass, in a loop whose updates add up several micro-batches."""

    needs = "accumulation over batches of a DataLoader"
    size: int
    """Micro-batches of the window."""
    left_over: int = 0
    """Micro-batches that the pass before had left over."""
    usual: int | None
    """Micro-batches of the other updates; None where they differ."""


class MicroBatches(Recogniser):
    makes = (MicroBatchesUsed, SameRowsAdded, UncountedLossUsed, FirstWindowOfPass)

    def begin(self) -> None:
        self._gradients = self.fact(GradientLedger)
        self._largest: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        """Micro-batches of an optimizer's updates, at most."""
        self._usual: WeakKeyDictionary[Optimizer, WindowCounts] = WeakKeyDictionary()
        self._quotients: WeakKeyDictionary[Optimizer, set[float | None]] = WeakKeyDictionary()
        """Optimizer to the numbers by which its updates' gradients were divided by hand, each once."""
        self._same_rows = FirstByKey[Hashable, int | None]()
        """Stack of a backward pass to the updates that added up the same rows; None once one added up others."""
        self._asked = 1
        """Micro-batches for an update that the latest Trainer was asked for."""
        self._countless: Callable[..., Any] | None = None
        """Loss function of the user's own, given to that Trainer, that never reads how many targets a window has."""
        self._undivided = False
        """Whether the latest backward pass was of a mean that nobody divided."""

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._asked = getattr(event.trainer.args, "gradient_accumulation_steps", 1)
        given = getattr(event.trainer, "compute_loss_func", None), type(event.trainer).compute_loss
        own = next((inspect.unwrap(each) for each in given if each is not None), None)
        code = getattr(own, "__code__", None)
        users = code is not None and self.monitor.locator.is_users_file(code.co_filename)
        self._countless = own if users and own is not None and _never_reads_the_count(own) else None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self._countless is not None and self.monitor.is_sampled():
            self._undivided = _is_undivided_mean(event.root, self._asked)

    def on_used(self, fact: GradientsUsed) -> None:
        if fact.empty:
            return
        self._count(fact)
        self._compare_rows(fact.fresh)
        shares, ledger = self._shares(fact), self._gradients.of(fact.optimizer)
        if self._countless is not None and len(fact.fresh) == self._asked > 1:
            code = self._countless.__code__
            where = self.monitor.locator.shown((code.co_filename, code.co_firstlineno))
            name, asked = code.co_name, self._asked
            self.tell(UncountedLossUsed(function=name, micro_batches=asked, undivided=self._undivided, where=where))
            if self._undivided:
                return
        if shares and ledger is not None:
            by_hand = self._divided_by_hand(fact, ledger.rounding)
            if by_hand is not None:
                targets = [entry.targets for entry in fact.fresh if entry.targets is not None]
                # The last batch of an epoch is smaller in every training.
                rows = {entry.batch.shape[:1] if isinstance(entry.batch, RowsGiven) else None for entry in fact.fresh}
                known = targets if len(targets) == len(shares) and len(rows) == 1 and None not in rows else ()
                latest = fact.fresh[-1].where
                self.tell(MicroBatchesUsed(shares=shares, targets=known, divided_by_hand=by_hand, where=latest))

    def _compare_rows(self, fresh: Sequence[Contribution]) -> None:
        """Tell of a line whose backward passes had the same rows in each update so far: a loop around one batch does
        that in all of them, two small batches now and then."""
        if not _are_of_one_line(fresh):
            return
        latest = fresh[-1]
        same = all(each.batch == fresh[0].batch for each in fresh)
        known = self._same_rows.get(latest.stack, 0)
        self._same_rows[latest.stack] = updates = None if known is None or not same else known + 1
        if updates is not None:
            self.tell(SameRowsAdded(times=len(fresh), updates=updates, where=latest.where))

    def _divided_by_hand(self, fact: GradientsUsed, rounding: float) -> float | None:
        """Number by which each update divides its gradients by hand; None in the first, where that cannot be told yet.

        A division by hand is one by the number of micro-batches, or by the same number in each update. Clipping by
        hand divides by another each time.
        """
        now, known = fact.divided_by, self._quotients.setdefault(fact.optimizer, set())
        first = not known
        seen = any(each is now or (each and now and is_same_quotient(now, each, rounding)) for each in known)
        if not seen and len(known) < 2:
            known.add(now)
        if len(known) > 1 or now is None:
            return 1.0
        is_number = is_same_quotient(now, len(fact.fresh), rounding)
        return None if first and now != 1 and not is_number else now

    def _count(self, fact: GradientsUsed) -> None:
        """Compare the first window of a pass with the others."""
        of = None if fact.batch is None else fact.batch.of
        if of is None or not fact.fresh:
            return
        usual, size, goes_on = self._usual.get(fact.optimizer), len(fact.fresh), _goes_on(fact.fresh)
        if usual is not None and usual.number >= MIN_WINDOWS and usual.size > 1 and not of.updates:
            left = sum(entry.of is not of for entry in fact.fresh) if goes_on else 0
            same = None if usual.differ else usual.size
            self.tell(FirstWindowOfPass(size=size, left_over=left, usual=same, where=fact.where))
        if goes_on or not of.updates:
            return
        if usual is None:
            self._usual[fact.optimizer] = WindowCounts(size)
        else:
            usual.number += 1
            usual.differ = usual.differ or size != usual.size

    def _shares(self, fact: GradientsUsed) -> list[float]:
        """What part of its batch's mean loss each backward pass was of; empty where that is not known or not meant."""
        size = len(fact.fresh)
        shares = [entry.share for entry in fact.fresh if entry.share is not None]
        if size < 2 or len(shares) < size or not self._are_micro_batches(fact):
            return []
        usual = max(size, self._largest.get(fact.optimizer, 0))
        self._largest[fact.optimizer] = usual
        if size < usual or any(entry.number in self._gradients.cut for entry in fact.fresh):
            return []  # the end of an epoch cut it short
        return shares

    def _are_micro_batches(self, fact: GradientsUsed) -> bool:
        """Whether backward passes are of the same loss for different rows, and not of several losses of one update."""
        entries = fact.fresh
        size, inputs = len(entries), {entry.batch for entry in entries}
        one_kind = len({entry.models for entry in entries}) == len({entry.of for entry in entries}) == 1
        if not one_kind or None in inputs or len(inputs) < size:
            return False
        if fact.batch is not None:
            return fact.batch.of.pending >= size
        # Rows that the script makes itself are of one loss if one line is repeated for them; two networks have more.
        # And there are as many each time: graphs and episodes have their own sizes. Texts have their own lengths.
        sizes = {_size(entry.batch) if isinstance(entry.batch, RowsGiven) else None for entry in entries}
        # Optimizers that divide the parameters of one network among them use the same backward passes.
        numbers = {entry.number for entry in entries}
        alike = all(ledger.of_update(entries[0].used) == numbers for ledger in self._gradients.ledgers)
        return len({entry.stack for entry in entries}) == len(sizes) == 1 and alike


def _are_of_one_line(fresh: Sequence[Contribution]) -> bool:
    """Whether one line went back through the same models several times, with rows that are known."""
    kinds = {(each.models, each.stack) for each in fresh}
    return len(fresh) > 1 and len(kinds) == 1 and all(each.batch is not None for each in fresh)


def _size(given: RowsGiven) -> tuple[int, ...]:
    """How many rows there are, and of how many dimensions; of a single row, which may be a whole graph, its shape."""
    rows = given.shape[:1]
    return given.shape if rows == (1,) else (*rows, len(given.shape))


def _goes_on(fresh: Sequence[Contribution]) -> bool:
    """Whether a window began in the pass before, which was not shortened."""
    passes = {entry.of for entry in fresh}
    first = fresh[0].of
    same_loader = len({each.loader for each in passes if each is not None}) == 1
    return len(passes) == 2 and first is not None and None not in passes and same_loader and not first.shortened


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
        if abs(factor * asked - 1) <= LOSS_RATIO_RTOL:
            return False
    return False
