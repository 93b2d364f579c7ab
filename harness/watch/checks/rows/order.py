from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch.optim import Optimizer
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler

from harness.watch.bounded import LatestByKey
from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.events import Backward, Batch, Drawn, End, OptimizerMade, Pass, Seeded, Step
from harness.watch.facts.carried_states import CarriedStates
from harness.watch.facts.datasets import length
from harness.watch.facts.gradient_ledger import rows_of
from harness.watch.facts.samplers import batch_sampler, has_torchs_own_sampler, is_shuffled_stream, row_sampler
from harness.watch.run.passes import Beginning, Passes, PassOver

MIN_DRAWS = 3
"""Draws in a row, of two of which chance would make two permutations. By reasoning: eight rows have 40320."""

MIN_REPEATED_BATCHES = 12
"""Batches that must have come again for their order to be known: if there are four of them, and another order each
time, these come in one order by chance in one of a thousand runs."""

TOO_FEW_BATCHES = 3
"""Batches that are too few for their order to matter, or to be told from another. By reasoning."""

MOST = 4096
"""Batches that are told apart. More than a list has that is gone through again and again."""

MIN_SHARE_OF_SAME_ROWS = 0.25
"""Smallest share of rows that must come as they did in the epoch before. Mirroring at random leaves half of them, and a
dataset that draws a row itself hardly any."""

MIN_ROWS = 16
"""Rows that are worth drawing an order of."""

MOST_ROWS = 1_000_000
"""Rows up to which a permutation is kept."""


class DrawnAlike(Check):
    """The same permutation is drawn in each epoch, because the generator is seeded again.

    ## Why is this a bug?
    With a seed before each draw, the rows always come in the same order, and if only some of them are drawn, the rest
    are never seen.

    ## What to do
    Seed once, before training, or give `torch.randperm` its own generator, which continues from epoch to epoch.

    ## When it is right
    The same order for another training, with an optimizer of its own, is not reported: folds and repetitions are meant
    to be alike.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    new_since = "0.3.0"
    explains = ("rows::random-state-set-back",)

    needs = "permutations that the script draws while it trains"

    def begin(self) -> None:
        self._latest: dict[str, tuple[torch.Tensor, int, int]] = {}
        """Line to its permutation, how often that came in a row, and the updates made when it came last."""

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        self._latest.clear()

    def on_drawn(self, event: Drawn) -> None:
        made, drawn = event.at.updates_made, event.permutation
        if event.where is None or not MIN_ROWS <= len(drawn) <= MOST_ROWS or not made:
            return
        before, times, updates = self._latest.get(event.where, (drawn[:0], 0, -1))
        if updates == made:
            return  # nothing was trained in between
        again = times + 1 if torch.equal(before, drawn) else 1
        self._latest[event.where] = drawn.clone(), again, made
        if times:
            self.says(self.judge(len(drawn), again), event.where, event.at.update)

    @staticmethod
    def judge(rows: int, times: int) -> Verdict:
        """A permutation of so many rows that came so many times in a row."""
        if times != MIN_DRAWS:
            return HELD
        return Found(
            expected="a new permutation in each epoch",
            observed=f"the same permutation of {rows} rows {times} times in a row: the generator is seeded "
            "again before each draw",
        )


class RandomStateSetBack(Check):
    """The random numbers of a training begin again and again, because torch is seeded with a seed that it had before.

    ## Why is this a bug?
    `torch.manual_seed` sets back everything that draws from torch: dropout, noise, augmentation and the order of rows.
    In a dataset's `__getitem__`, or in an evaluation that is to be repeatable, it also decides what the next update of
    the training draws. The same dropout masks and the same noise come again, so they no longer average out, and the
    model learns to live with these few.

    ## What to do
    Give what must be repeatable a generator of its own: `torch.Generator().manual_seed(seed)`, passed as `generator=`.
    Or put the state back afterwards: `with torch.random.fork_rng(): torch.manual_seed(seed)`.

    ## When it is right
    Seeds that are put back before the training goes on, that differ each time, or that are given before another
    optimizer is made (folds and repetitions are meant to be alike) are not reported. Nor is a training that draws no
    random numbers.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    new_since = "0.4.0"

    needs = "seeds that torch is given while a training goes on over a DataLoader"

    def begin(self) -> None:
        self._latest: tuple[int, str | None] | None = None
        """The seed that was given since the latest update, and where."""
        self._at_batch: torch.Tensor | None = None
        """The state when the batch at hand was given, where that seed is still in force."""
        self._used = LatestByKey[int, int](MOST)
        """Seed to the update before which it was first given."""
        self._times = 0

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        """Another training may begin as this one did."""
        self._used.clear()

    def on_seeded(self, event: Seeded) -> None:
        if event.library == "torch" and event.where is not None and event.at.updates_made:
            self._latest = torch.initial_seed(), event.where

    def on_batch(self, event: Batch) -> None:
        """A seed that was put back (fork_rng, set_rng_state) is not in force any more."""
        seeded = self._latest is not None and torch.initial_seed() == self._latest[0]
        self._at_batch = torch.get_rng_state() if seeded else None

    def on_step(self, event: Step) -> None:
        latest, state = self._latest, self._at_batch
        self._latest = self._at_batch = None
        if latest is None:
            return
        (seed, where), now = latest, event.at.update
        if torch.initial_seed() != seed:
            self.says(HELD, where)
            return
        if state is None or torch.equal(state, torch.get_rng_state()):
            return  # nothing was drawn for this update
        before = self._used.get(seed)
        self._times += before is not None
        self._used.setdefault(seed, now)
        self.says(self.judge(seed, before, self._times, now), where, now)

    @staticmethod
    def judge(seed: int, before: int | None, times: int, update: int) -> Verdict:
        """A seed that was given before an update, and before an earlier one if it was; so many updates so far were made
        with random numbers that began again."""
        if before is None or times + 1 < MIN_DRAWS:
            return HELD
        return Found(
            expected="random numbers that go on from update to update",
            observed=f"torch is seeded with {seed} before update {update}, as it was before update "
            f"{before}, and the training draws from there",
            hint="Use a generator of its own for what must be repeatable (torch.Generator().manual_seed(seed)), or put "
            "the state back: with torch.random.fork_rng(): ...",
        )


IN_VAIN = (
    "Keep what was drawn in a list, or as the keys of a dict: a set of small whole numbers is gone through in their "
    "order, whatever order they were put in."
)
"""What to do where a permutation is drawn and lost."""


class SameOrderEachEpoch(Check):
    """Each epoch goes through the training rows in the same order.

    ## Why is this a bug?
    With one fixed order, the same rows share a batch in every epoch, and the last batches of an epoch always have the
    last word. The gradients' errors then repeat instead of averaging out, and rows that are sorted by class or by
    length make it worse. The only sign is a slightly worse model.

    ## What to do
    Give the training DataLoader shuffle=True.

    With a `DistributedSampler` or a shuffled stream of `datasets`, call `set_epoch(epoch)` at the beginning of each
    epoch; do not reseed whatever draws the order in each epoch.

    ## When it is right
    Samplers of your own (by length, by class, from easy to hard) may use any order, and are reported only if they draw
    another permutation of the rows in each epoch and give them in the same order all the same. Neither are
    datasets that grow from epoch to epoch, or that draw or change their rows at random themselves. Another training,
    with an optimizer of its own, may begin with the same seed. A model that gets its state from the previous batch must
    have the batches in order. Batches in a list that is shuffled, and a single batch that is trained on again and again
    to see whether a model can learn it at all, are not reported either.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    - https://github.com/huggingface/accelerate/issues/2627
    """

    needs = "second epoch of a DataLoader"

    def begin(self) -> None:
        self._passes, self._carried = self.fact(Passes), self.fact(CarriedStates)
        self._before: tuple[Pass, Beginning] | None = None
        """The epoch before."""
        self._optimizers: WeakKeyDictionary[Pass, Stepped] = WeakKeyDictionary()
        self._kept: BatchesKept | None = None
        self._latest: torch.Tensor | None = None
        """The permutation that was drawn since the latest batch."""
        self._drawn: WeakKeyDictionary[Pass, torch.Tensor] = WeakKeyDictionary()
        """Pass to the permutation that was drawn before its first batch."""

    def on_drawn(self, event: Drawn) -> None:
        self._latest = event.permutation if MIN_ROWS <= len(event.permutation) <= MOST_ROWS else None

    def on_batch(self, event: Batch) -> None:
        drawn, self._latest = self._latest, None
        if drawn is not None and event.of.batches == 1 and not has_torchs_own_sampler(event.of.loader):
            self._drawn[event.of] = drawn.clone()

    def on_step(self, event: Step) -> None:
        if event.batch is not None:
            stepped = self._optimizers.setdefault(event.batch.of, Stepped())
            if event.number == 1:
                stepped.first.add(event.optimizer)
            stepped.again |= event.optimizer not in stepped.first

    def on_pass_over(self, fact: PassOver) -> None:
        of, beginning = fact.of, fact.beginning
        if not of.trains or beginning is None:
            return
        own, before = has_torchs_own_sampler(of.loader), self._before
        stepped = self._optimizers.pop(of, None)
        if stepped is not None and not stepped.again:
            self._before = None  # another training
        same = self._before is not None and not self._carried.seen and _in_the_order_of(self._before, of, beginning)
        in_vain = self._before is not None and self._drew_in_vain(self._before, of, beginning)
        if same or in_vain or (before is not None and own):
            verdict = self.judge(of.loader, same_order=same or in_vain, in_vain=in_vain)
            self.says(verdict, beginning.where, fact.at.updates_made)
        self._before = of, beginning

    def _drew_in_vain(self, before: tuple[Pass, Beginning], now: Pass, beginning: Beginning) -> bool:
        """Whether two epochs had the same rows in the same order, though other permutations of all were drawn."""
        earlier, its_beginning = before
        one, other = self._drawn.get(earlier), self._drawn.get(now)
        if one is None or other is None or len(one) != len(other) or torch.equal(one, other):
            return False
        several = len(beginning.drawn) > 1 and None not in beginning.drawn
        return several and len(one) == length(now.dataset) and its_beginning.drawn == beginning.drawn

    def on_backward(self, event: Backward) -> None:
        """A loop that goes on with the batches of a pass that has ended keeps them."""
        ended = self._passes.ended
        if ended is None or event.inside_step or event.batch is None or event.batch.of is not ended:
            return
        if self._kept is None or self._kept.of is not ended:
            self._kept = BatchesKept(ended, event.where, event.at.update)
        self._kept.add(rows_of(event))

    def on_end(self, event: End) -> None:
        """Where they are collected anew from time to time, their order changes then."""
        kept, passes = self._kept, sum(each.count for each in self._passes.training())
        if kept is not None and kept.in_order and passes == 1 and not self._carried.seen:
            self.says(self.judge_batches(kept.of.batches), kept.where, kept.update)

    @staticmethod
    def judge(loader: Any, *, same_order: bool, in_vain: bool = False) -> Verdict:
        """An epoch that came after another: whether its rows came in the same order in a loop that carries no state
        over them, and whether they did ``in_vain``, though a sampler of the script's own drew another permutation."""
        if not same_order:
            return HELD
        sampler = _sampler(loader, in_vain=in_vain)
        return Found(
            expected="a new order in each epoch",
            observed="the rows come in the same order as in the previous epoch "
            f"({sampler})" + (", though the sampler drew another permutation" if in_vain else ""),
            hint=IN_VAIN if in_vain else _hint(loader),
            details={"sampler": sampler},
            may_be_meant=in_vain,
        )

    @staticmethod
    def judge_batches(batches: int) -> Verdict:
        """The batches of one pass that were trained on again and again in one order."""
        return Found(
            expected="a new order in each epoch",
            observed=f"the script trains on the {batches} batches of one pass again and again, in the same order",
            hint="Iterate over the DataLoader itself in each epoch: itertools.cycle and lists keep the batches of the "
            "first epoch.",
        )


def _sampler(loader: Any, *, in_vain: bool) -> str:
    """The class of what draws the rows."""
    batches = batch_sampler(loader)
    own = in_vain and type(batches) is not BatchSampler
    return type(batches if own else row_sampler(loader)).__name__


@dataclass
class BatchesKept:
    """The batches of a pass that has ended, by the backward passes that came after."""

    of: Pass
    where: str | None
    update: int
    places: dict[Hashable, int] = field(default_factory=dict)
    """Places of what the model was given, in the order in which it first came."""
    latest: int = 0
    """The place of the latest that came again."""
    again: int = 0
    rounds: int = 0

    def add(self, given: Hashable) -> None:
        place = self.places.get(given)
        if place is None:
            if len(self.places) < MOST:
                self.places[given] = len(self.places)
        elif place != self.latest:  # else another loss of the same batch
            self.again += 1
            self.rounds += place < self.latest
            self.latest = place

    @property
    def in_order(self) -> bool:
        """Whether they came several times, each time in the same order."""
        batches = self.of.batches
        return (
            batches > TOO_FEW_BATCHES
            and self.again > max(batches, MIN_REPEATED_BATCHES)
            and self.rounds * batches <= self.again
        )


@dataclass
class Stepped:
    """The optimizers that stepped in a pass."""

    first: WeakSet[Optimizer] = field(default_factory=WeakSet)
    """Optimizers that made their first step in it."""
    again: bool = False
    """Whether any other stepped."""


def _hint(loader: Any) -> str | None:
    sampler = row_sampler(loader)
    if isinstance(sampler, DistributedSampler):
        return "Call sampler.set_epoch(epoch) at the start of each epoch."
    if is_shuffled_stream(loader.dataset):
        return "Call dataset.set_epoch(epoch) at the start of each epoch."
    if isinstance(sampler, RandomSampler):
        return "Don't seed the generator again in each epoch."
    return None


def _in_the_order_of(before: tuple[Pass, Beginning], now: Pass, beginning: Beginning) -> bool:
    stream = is_shuffled_stream(now.dataset)
    one_batch = now.batches < 2 or now.planned == 1 or len(beginning.content) < 2
    if one_batch or not (stream or has_torchs_own_sampler(now.loader)):
        return False
    earlier, its_beginning = before
    if earlier.dataset is now.dataset and not stream:
        return its_beginning.drawn == beginning.drawn and _are_the_same_rows(its_beginning, beginning)
    return earlier.planned == now.planned and its_beginning.content == beginning.content


def _are_the_same_rows(one: Beginning, other: Beginning) -> bool:
    """Whether a dataset gives for an index what it gave before, as one that draws at random itself does not."""
    same = sum(a == b for a, b in zip(one.samples, other.samples, strict=False))
    return one.content == other.content or same > MIN_SHARE_OF_SAME_ROWS * len(one.samples)
