from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, WeakSet

from torch.optim import Optimizer
from torch.utils.data import DistributedSampler, RandomSampler

from harness.watch.check import Check
from harness.watch.events import Backward, End, Pass, PassEnds, Step
from harness.watch.facts.carried_states import CarriedStates
from harness.watch.facts.gradient_ledger import rows_of
from harness.watch.facts.passes import Beginning, Passes
from harness.watch.facts.samplers import has_torchs_own_sampler, is_shuffled_stream, row_sampler
from harness.watch.monitor import Monitor

ENOUGH = 12
"""Batches that must have come again for their order to be known: if there are four of them, and another order each
time, these come in one order by chance in one of a thousand runs."""

FEW = 3
"""Batches that are too few for their order to matter, or to be told from another. By reasoning."""

MOST = 4096
"""Batches that are told apart. More than a list has that is gone through again and again. Neither half nor double of it
changes a verdict of the corpus."""

MIN_SHARE_OF_SAME_ROWS = 0.25
"""Smallest share of rows that must come as they did in the epoch before. Mirroring at random leaves half of them, and a
dataset that draws a row itself hardly any. Neither half nor double of it changes a verdict of the corpus."""


@dataclass
class Kept:
    """The batches of a pass that has ended, by the backward passes that came after."""

    of: Pass
    where: str | None
    update: int
    places: dict[Hashable, int] = field(default_factory=dict)
    """Of what the model was given, in the order in which it first came."""
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
        return batches > FEW and self.again > max(batches, ENOUGH) and self.rounds * batches <= self.again


@dataclass
class Stepped:
    """The optimizers that stepped in a pass."""

    first: WeakSet[Optimizer] = field(default_factory=WeakSet)
    """Those that made their first step in it."""
    again: bool = False
    """Whether any other stepped."""


class SameOrderEachEpoch(Check):
    """Each epoch goes through the training rows in the same order.

    ## Why is this a bug?
    With one fixed order, the same rows share a batch in every epoch, and the last batches of an epoch always have the
    last word. The gradients' errors then repeat instead of averaging out, and rows that are sorted by class or by
    length make it worse. The only sign is a slightly worse model.

    ## What to do
    Give the training's DataLoader shuffle=True.

    With a `DistributedSampler` or a shuffled stream of `datasets`, call `set_epoch(epoch)` at the beginning of each
    epoch; do not reseed whatever draws the order in each epoch.

    ## When it is right
    Samplers of your own (by length, by class, from easy to hard) may use any order and are not looked at. Neither are
    datasets that grow from epoch to epoch, or that draw or change their rows at random themselves. Another training,
    with an optimizer of its own, may begin with the same seed. A model that gets its state from the previous batch must
    have the batches in order. Batches in a list that is shuffled, and a single batch that is trained on again and again
    to see whether a model can learn it at all, are not reported either.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    - https://github.com/huggingface/accelerate/issues/2627
    """

    needs = "second epoch of a DataLoader"
    formerly = ("rows::another-order-each-epoch",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)
        self.before: tuple[Pass, Beginning] | None = None
        """The epoch before."""
        self.optimizers: WeakKeyDictionary[Pass, Stepped] = WeakKeyDictionary()
        self.carried = monitor.fact(CarriedStates)
        self.kept: Kept | None = None

    def on_step(self, event: Step) -> None:
        if event.batch is not None:
            stepped = self.optimizers.setdefault(event.batch.of, Stepped())
            if event.number == 1:
                stepped.first.add(event.optimizer)
            stepped.again |= event.optimizer not in stepped.first

    def on_pass_ends(self, event: PassEnds) -> None:
        beginning = self.passes.beginnings.get(event.of)
        if not event.of.trains or beginning is None:
            return
        self.looked |= self.before is not None and has_torchs_own_sampler(event.of.loader)
        stepped = self.optimizers.pop(event.of, None)
        if stepped is not None and not stepped.again:
            self.before = None  # another training
        if self.before is not None and not self.carried.seen and _in_the_order_of(self.before, event.of, beginning):
            self.found(
                expected="another order in each epoch",
                observed="the rows come in the order of the epoch before "
                f"({type(row_sampler(event.of.loader)).__name__})",
                hint=_hint(event.of),
                where=beginning.where,
                update=self.monitor.updates_made,
            )
        self.before = event.of, beginning

    def on_backward(self, event: Backward) -> None:
        """A loop that goes on with the batches of a pass that has ended keeps them."""
        ended = self.passes.ended
        if ended is None or event.inside_step or event.batch is None or event.batch.of is not ended:
            return
        if self.kept is None or self.kept.of is not ended:
            self.kept = Kept(ended, event.where, self.monitor.update)
        self.kept.add(rows_of(event))

    def on_end(self, event: End) -> None:
        """Where they are collected anew from time to time, their order changes then."""
        kept, passes = self.kept, sum(each.count for each in self.passes.training())
        if kept is not None and kept.in_order and passes == 1 and not self.carried.seen:
            self.found(
                expected="another order in each epoch",
                observed=f"the {kept.of.batches} batches of one pass are trained on again and again, in one order",
                hint="Go through the DataLoader itself in each epoch; itertools.cycle and lists keep the batches of "
                "the first.",
                where=kept.where,
                update=kept.update,
            )


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


def _hint(now: Pass) -> str | None:
    sampler = row_sampler(now.loader)
    if isinstance(sampler, DistributedSampler):
        return "Call sampler.set_epoch(epoch) at the beginning of each epoch."
    if is_shuffled_stream(now.dataset):
        return "Call dataset.set_epoch(epoch) at the beginning of each epoch."
    if isinstance(sampler, RandomSampler):
        return "Do not seed the generator anew for each epoch."
    return None
