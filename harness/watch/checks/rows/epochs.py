from __future__ import annotations

import itertools
from collections.abc import Mapping

from torch.utils.data import IterableDataset, SequentialSampler, WeightedRandomSampler

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, NothingToJudge, Verdict
from harness.watch.facts.datasets import length, stored_rows
from harness.watch.facts.samplers import row_sampler, skipped_batches
from harness.watch.run.passes import Beginning, PassesOver, PassOver, latest_of

MAX_SHARE_OF_DIFFERENT_ROWS = 0.5
"""Largest number of different rows that are given, as a share of those that the dataset holds at the same places. By
reasoning: an index that is halved gives half of them."""

MAX_ALIKE = 0.8
"""Largest share of different rows that is looked into. By reasoning: an index that is halved gives half, and more where
not all places have been seen."""

LOOKED_UP = 64
"""Places of a dataset that are compared with what it holds there: what tells a rule."""

ENOUGH_ROWS = 32
"""Rows of a pass that must have been seen. Half or double of it changes verdicts (scripts/records/margins.json)."""

LIBRARIES = ("datasets", "torch", "builtins")
"""Packages whose datasets give each row once: where it comes twice, it is in the data twice."""

MAX_SHARE_OF_WEIGHTS = 0.2
"""Largest number of a sampler's weights, as a share of the rows, that is one of classes and not of rows."""


class EpochCutShort(Check):
    """The loop leaves each epoch before it has gone through all training rows.

    ## Why is this a bug?
    A `break` or `itertools.islice` from a quick trial is easily left in the loop. What the script calls an epoch is
    then only part of one: the training has fewer updates than the numbers say, and a schedule that was made for whole
    epochs is far from its end.

    If `next(iter(loader))` takes each batch from a new pass, an epoch's number of batches misses about a third of the
    rows.

    ## What to do
    Remove the break, unless an epoch is meant to be only a part of the data.

    Write `for batch in loader`: `next(iter(loader))` begins a new pass each time.

    ## When it is right
    If an epoch is a fixed number of batches on purpose, with an evaluation after each, ignore this warning: with a
    different order each time, all rows come up in the end. The same holds if each update is meant to draw a batch from
    all rows. A last window of accumulated micro-batches that is left out, and a training that ends after a number of
    updates, are not reported.
    """

    needs = "whole epoch, as with --full"
    severity = "warning"

    def judge(self, fact: PassesOver) -> Verdict:
        epoch, anew = fact.left_early, fact.begun_anew
        if fact.at.complete and epoch is not None and not isinstance(row_sampler(epoch.loader), SequentialSampler):
            return Found(
                expected=f"{epoch.planned} batches in each epoch",
                observed=f"the loop leaves each epoch after {epoch.batches} batch{'es' * (epoch.batches != 1)}",
                where=epoch.where,
                update=fact.at.updates_made,
            )
        if fact.at.complete and anew is not None and not anew.same:
            return Found(
                expected="loops over all batches of the DataLoader",
                observed=f"the script started {anew.count} passes and left each after one batch",
                hint="Write `for batch in loader`, unless each update is meant to draw a batch from all rows.",
                where=anew.where,
                update=2,
            )
        whole = any(kind.first.exhausted and not kind.first.shortened for kind in fact.training)
        return HELD if whole else NOTHING_TO_JUDGE


class FirstBatchAgain(Check):
    """The loop starts a new pass for each batch, so it gets the same first batch each time.

    ## Why is this a bug?
    `next(iter(loader))` makes a new iterator. If the loader does not shuffle, that gives the first batch in each
    update: the model learns a few rows by heart and never sees the others.

    ## What to do
    Write `for batch in loader`: `next(iter(loader))` starts a new pass each time.

    ## When it is right
    One batch that is learned by heart on purpose is taken from the loader once, before the loop, and is not reported.
    If the loader shuffles, each batch is drawn from all rows; `rows::epoch-cut-short` warns about that.
    """

    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def judge(self, fact: PassesOver) -> Verdict:
        if not fact.at.complete or not fact.training:
            return NOTHING_TO_JUDGE
        anew = fact.begun_anew
        if anew is None or not anew.same:
            return HELD
        return Found(
            expected="loops over all batches of the DataLoader",
            observed=f"the script started {anew.count} passes and left each after one batch, the same one each time",
            where=anew.where,
            update=2,
        )


class GivenByEachWorker(Check):
    """Every DataLoader worker yields all rows of an `IterableDataset`.

    ## Why is this a bug?
    Each worker has its own copy of the dataset and iterates over all of it: with four workers an epoch goes through
    each row four times. The steps of an epoch, the schedule and whatever is counted in epochs are off by that factor.

    ## What to do
    Split the `IterableDataset` over its workers: `torch.utils.data.get_worker_info()` says which worker runs it.

    ## When it is right
    Never. Rows that are in the data several times, and single rows that come twice, are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset
    """

    needs = "epoch of an IterableDataset with several workers"
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def judge(self, fact: PassOver) -> Verdict:
        of, beginning = fact.of, fact.beginning
        if not of.trains or beginning is None or beginning.rows.total() < ENOUGH_ROWS:
            return NOTHING_TO_JUDGE
        if of.loader.num_workers < 2 or not isinstance(of.dataset, IterableDataset):
            return NOTHING_TO_JUDGE
        workers = of.loader.num_workers
        if not of.exhausted or any(count % workers for count in beginning.rows.values()):
            return HELD
        return Found(
            expected="each row from only one of the workers",
            observed=f"an epoch of {beginning.rows.total()} rows has only {len(beginning.rows)} different ones, each "
            f"given by all {workers} workers",
            update=fact.at.updates_made,
        )


class RepeatedOrSkipped(Check):
    """A dataset returns some rows for several indices, and others for none.

    ## Why is this a bug?
    If `__getitem__` divides its index, or takes a remainder of it, many indices give the same row. The model never
    learns from the rows that no index reaches, and the others count several times. The loss falls as it should, on
    fewer rows than the dataset has.

    ## What to do
    Check the dataset's `__getitem__` and the indices that select from it.

    ## When it is right
    Datasets that hold few different rows, that draw their rows themselves or that go through all of theirs several
    times are not reported.
    """

    needs = "epoch of rows that can be told apart"
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def judge(self, fact: PassOver) -> Verdict:
        beginning = fact.beginning
        if not fact.of.trains or beginning is None or beginning.rows.total() < ENOUGH_ROWS:
            return NOTHING_TO_JUDGE
        if not _gives_few_of_many(fact.of.dataset, beginning):
            return NOTHING_TO_JUDGE  # the end of the run says whether others did
        return Found(
            expected="a different row for each index of the dataset",
            observed=f"an epoch of {beginning.rows.total()} rows has only {len(beginning.rows)} different ones",
            update=fact.at.updates_made,
        )

    def judge_run(self, fact: PassesOver) -> Verdict:
        if fact.some_twice:
            return NothingToJudge("no rule in the rows that came twice")
        return HELD if fact.rows_seen >= ENOUGH_ROWS else NOTHING_TO_JUDGE


class RestNeverReached(Check):
    """The loop leaves each epoch after the same first batches, so it never reaches the rows after them.

    ## Why is this a bug?
    A `break` or `itertools.islice` from a quick trial is easily left in the loop. If the loader does not shuffle, the
    model never trains on the rows behind it; if the data are sorted, whole classes are missing.

    ## What to do
    Remove the break, unless an epoch is meant to be only a part of the data.

    ## When it is right
    `rows::epoch-cut-short` warns about shuffled epochs, in which all rows come up in the end. A single pass that is
    left early and datasets that draw their rows themselves are not reported.
    """

    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def judge(self, fact: PassesOver) -> Verdict:
        if not fact.at.complete or not fact.training:
            return NOTHING_TO_JUDGE
        epoch = fact.left_early
        if epoch is None or fact.drawn_anew or not isinstance(row_sampler(epoch.loader), SequentialSampler):
            return HELD
        return Found(
            expected=f"{epoch.planned} batches in each epoch",
            observed=f"the loop leaves each epoch after {epoch.batches} batch{'es' * (epoch.batches != 1)}, so the "
            "rows after that are never trained on",
            where=epoch.where,
            update=fact.at.updates_made,
        )


class SkippedInEachEpoch(Check):
    """The first batches are skipped in every epoch instead of only in the resumed one.

    ## Why is this a bug?
    `skip_first_batches` returns a loader that always leaves them out. If it takes the place of the loader for the whole
    training, each epoch is short by that many batches; without shuffling, the same rows are always missing.

    ## What to do
    Use the loader from `skip_first_batches` only for the resumed epoch, and the original loader from then on.

    ## When it is right
    Never. A single epoch with skipped batches is not reported.

    ## References
    - https://github.com/huggingface/accelerate/issues/2316
    """

    needs = "second epoch"
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def judge(self, fact: PassesOver) -> Verdict:
        if not fact.at.complete or sum(kind.count for kind in fact.training) < 2:
            return NOTHING_TO_JUDGE
        if not all(skipped_batches(kind.first.loader) for kind in fact.training):
            return HELD
        latest = latest_of(fact.training)
        return Found(
            expected="all batches in each epoch after the resumed one",
            observed=f"every epoch skips its first {skipped_batches(latest.loader)} "
            f"batch{'es' * (skipped_batches(latest.loader) != 1)}",
            where=latest.where,
            update=fact.at.updates_made,
        )


class WeightsOfClasses(Check):
    """A `WeightedRandomSampler` has one weight per class instead of one per row, so it draws only the first rows.

    ## Why is this a bug?
    The sampler takes its weights to be row weights. With one for each of two classes, it draws the first two rows of
    the dataset again and again, and no others; the loss falls to 0.

    ## What to do
    Give the sampler the weight of each row's class: `weights[labels]`.

    ## When it is right
    A sampler with a weight for each row, or for most of them, is not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.WeightedRandomSampler
    """

    needs = "WeightedRandomSampler"
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def judge(self, fact: PassOver) -> Verdict:
        sampler, rows = row_sampler(fact.of.loader), length(fact.of.dataset)
        if not fact.of.trains or not rows or not isinstance(sampler, WeightedRandomSampler):
            return NOTHING_TO_JUDGE
        weights = len(sampler.weights)
        if weights >= MAX_SHARE_OF_WEIGHTS * rows:
            return HELD
        return Found(
            expected=f"one weight for each of {rows} rows",
            observed=f"the sampler has {weights} weights, so it draws only the first {weights} rows",
            where=fact.of.where,
            update=fact.at.updates_made,
        )


def _gives_few_of_many(dataset: object, beginning: Beginning) -> bool:
    """Whether a dataset of the script's own gives half of the different rows that it holds at these places, or less.

    Not where the rows that are alike follow no rule: they are so by nature.
    """
    own = type(dataset).__module__.partition(".")[0] not in LIBRARIES
    different = len(set(beginning.at.values()))
    if not own or len(beginning.at) < ENOUGH_ROWS or different > MAX_ALIKE * len(beginning.at):
        return False
    if not (_are_runs(beginning.at) or _are_remainders(beginning.at)):
        return False
    places = sorted(beginning.at)[:LOOKED_UP]
    given = len({beginning.at[place] for place in places})
    return given <= MAX_SHARE_OF_DIFFERENT_ROWS * stored_rows(dataset, places)


def _are_runs(at: Mapping[int, bytes]) -> bool:
    """Whether indices beside each other give one row, as where the index is divided."""
    changes = sum(at[one] != at[other] for one, other in itertools.pairwise(sorted(at)))
    return changes == len(set(at.values())) - 1


def _are_remainders(at: Mapping[int, bytes]) -> bool:
    """Whether indices with one remainder give one row, as where it is taken of the index."""
    by = len(set(at.values()))
    return len({(index % by, row) for index, row in at.items()}) == by
