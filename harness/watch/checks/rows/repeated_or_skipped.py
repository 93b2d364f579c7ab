from __future__ import annotations

import itertools
from collections.abc import Mapping

from torch.utils.data import IterableDataset, SequentialSampler, WeightedRandomSampler

from harness.watch.check import Check
from harness.watch.events import End, Pass, PassEnds
from harness.watch.facts.datasets import length, stored_rows
from harness.watch.facts.passes import Beginning, Passes, latest_of
from harness.watch.facts.samplers import row_sampler, skipped_batches
from harness.watch.monitor import Monitor

MAX_SHARE_OF_DIFFERENT_ROWS = 0.5
"""Largest number of different rows that are given, as a share of those that the dataset holds at the same places. By
reasoning: an index that is halved gives half of them."""

MAX_SHARE_OF_WEIGHTS = 0.2
"""Largest number of a sampler's weights, as a share of the rows, that is one of classes and not of rows. A guess."""

MAX_ALIKE = 0.8
"""Largest share of different rows that is looked into. By reasoning: an index that is halved gives half, and more where
not all places have been seen."""

LOOKED_UP = 64
"""Places of a dataset that are compared with what it holds there: a guess at what tells a rule."""

ENOUGH_ROWS = 32
"""Rows of a pass that must have been seen. A guess."""

LIBRARIES = ("datasets", "torch", "builtins")
"""Packages whose datasets give each row once: where it comes twice, it is in the data twice."""


class RepeatedOrSkipped(Check):
    """Epochs give some training rows again and again, and others never.

    ## Why is this a bug?
    Rows that no epoch reaches are never learned from, and those that take their place count several times. The loss
    falls as it should, on fewer rows than the dataset has.

    ## What to do
    Look at the dataset's __getitem__ and at the indices that select from it.

    Write `for batch in loader`, without a `break`: `next(iter(loader))` begins a new pass each time. Split an
    `IterableDataset` over its workers. Give `skip_first_batches` only to the epoch that is resumed.

    ## When it is right
    Rows that are drawn with replacement, by class or by weight come several times in an epoch and are not reported,
    nor are datasets that hold few different rows, draw them themselves or go through all of theirs several times,
    one pass that is left early, or shuffled epochs that are parts of the data, be it one batch
    (`rows::epoch-cut-short` warns of the latter).

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset
    - https://github.com/huggingface/accelerate/issues/2316
    """

    id = "rows::repeated-or-skipped"
    needs = "epoch of rows that can be told apart"
    formerly = ("rows::every-row-once",)
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)

    def on_pass_ends(self, event: PassEnds) -> None:
        beginning = self.passes.beginnings.get(event.of)
        if not event.of.trains or beginning is None:
            return
        self._drawn_by_class(event.of)
        if beginning.rows.total() < ENOUGH_ROWS:
            return
        self.looked = True
        different = _few_of_many(event.of.dataset, beginning)
        by_workers = _given_by_all_workers(event.of, beginning)
        if different is None and not by_workers:
            return
        total = beginning.rows.total()
        self.found(
            expected="another row at each place of the dataset",
            observed=f"{total} rows of an epoch are {len(beginning.rows)} different ones"
            + (f", each given by all {event.of.loader.num_workers} workers" if by_workers else ""),
            hint="Split an IterableDataset over its workers (get_worker_info)." if by_workers else None,
            where=beginning.where,
            update=self.monitor.updates_made,
        )

    def _drawn_by_class(self, of: Pass) -> None:
        """A sampler that was given a weight for each class draws none but the first rows."""
        sampler, rows = row_sampler(of.loader), length(of.dataset)
        weights = len(sampler.weights) if isinstance(sampler, WeightedRandomSampler) else rows
        if rows and weights and weights < MAX_SHARE_OF_WEIGHTS * rows:
            self.found(
                expected=f"a weight for each of {rows} rows",
                observed=f"the sampler has {weights} weights, so it draws only the first {weights} rows",
                hint="Give the sampler the weight of each row's class: weights[labels].",
                where=of.where,
                update=self.monitor.updates_made,
            )

    def on_end(self, event: End) -> None:
        if self.monitor.complete:
            self._begun_anew()
            self._skipped()
            self._left_early()

    def _begun_anew(self) -> None:
        """A loop that begins a pass for each batch is given the first one each time, unless it is drawn at random."""
        anew = self.passes.begun_anew()
        if anew is not None and anew.same:
            self.found(
                expected="passes over all batches",
                observed=f"{anew.count} passes were begun and left after one batch, the same each time",
                hint="Write for batch in loader; next(iter(loader)) begins a new pass each time.",
                where=anew.where,
                update=2,
            )

    def _skipped(self) -> None:
        training = self.passes.training()
        if sum(each.count for each in training) >= 2 and all(skipped_batches(each.first.loader) for each in training):
            latest = latest_of(training)
            self.found(
                expected="all batches in each epoch",
                observed=f"the first {skipped_batches(latest.loader)} of them are skipped in each",
                hint="skip_first_batches is for the epoch that is resumed only.",
                where=latest.where,
                update=self.monitor.updates_made,
            )

    def _left_early(self) -> None:
        epoch = self.passes.left_early()
        if epoch is None or self._are_drawn(epoch):
            return
        if isinstance(row_sampler(epoch.loader), SequentialSampler):
            self.found(
                expected=f"{epoch.planned} batches an epoch",
                observed=f"each epoch is left after {epoch.batches}, so the rows behind them are never trained on",
                hint="Take out the break, unless epochs are meant to be parts of the data.",
                where=epoch.where,
                update=self.monitor.updates_made,
            )

    def _are_drawn(self, epoch: Pass) -> bool:
        """Whether the dataset draws its rows itself, so that an index gives another one in another epoch."""
        begun = [self.passes.beginnings.get(each) for each in (epoch, latest_of(self.passes.training()))]
        one, other = ({} if each is None else each.at for each in begun)
        return any(one[index] != other[index] for index in one.keys() & other.keys())


def _few_of_many(dataset: object, beginning: Beginning) -> int | None:
    """How many different rows a dataset of the script's own gives, where it holds twice as many at these places.

    None where it gives what it holds, or where the rows that are alike follow no rule: they are so by nature.
    """
    own = type(dataset).__module__.partition(".")[0] not in LIBRARIES
    different = len(set(beginning.at.values()))
    if not own or len(beginning.at) < ENOUGH_ROWS or different > MAX_ALIKE * len(beginning.at):
        return None
    if not (_are_runs(beginning.at) or _are_remainders(beginning.at)):
        return None
    places = sorted(beginning.at)[:LOOKED_UP]
    given = len({beginning.at[place] for place in places})
    return different if given <= MAX_SHARE_OF_DIFFERENT_ROWS * stored_rows(dataset, places) else None


def _are_runs(at: Mapping[int, bytes]) -> bool:
    """Whether indices beside each other give one row, as where the index is divided."""
    changes = sum(at[one] != at[other] for one, other in itertools.pairwise(sorted(at)))
    return changes == len(set(at.values())) - 1


def _are_remainders(at: Mapping[int, bytes]) -> bool:
    """Whether indices with one remainder give one row, as where it is taken of the index."""
    by = len(set(at.values()))
    return len({(index % by, row) for index, row in at.items()}) == by


def _given_by_all_workers(of: Pass, beginning: Beginning) -> bool:
    workers = of.loader.num_workers
    return (
        workers > 1
        and isinstance(of.dataset, IterableDataset)
        and all(count % workers == 0 for count in beginning.rows.values())
        and of.exhausted
    )
