from __future__ import annotations

from collections import Counter

from harness.vary.differences import Run, parting
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks


class OnWorkers(Relation):
    """With a different number of DataLoader workers, the script trains on different rows, or rows come twice.

    ## Why is this a bug?
    Workers should only fetch rows faster. A stream that is not divided among its workers yields each row once per
    worker, and a dataset that remembers which row comes next yields different rows.

    ## What to do
    In an `IterableDataset`, ask `torch.utils.data.get_worker_info()` which part is this worker's. In `__getitem__`, use
    the index alone.

    ## When it is right
    The order of a stream depends on its workers and is not compared; only rows that come more often are reported.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset
    """

    new_since = "0.4.0"
    kind = "workers"
    tries = "load the training rows with two workers, or with none"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        return cls.of_loaders(tried.trained) if tried.trained else "no DataLoader is used for training"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if not any(each.streams for each in tried.trained):
            return tried.same_rows(other, "with another number of workers")
        if (itself := parting(tried.first, tried.again, ("rows", "number of updates"))) is not None:
            return lacks(f"two unchanged runs already train on different rows in update {itself.update}")
        return _of_streams(tried.first, other)


def _of_streams(first: Run, other: Run) -> Outcome:
    """Whether a row comes more often in a pass with one number of workers than with the other."""
    for few, many, which in ((first, other, "another"), (other, first, "the script's own")):
        once = _passes(few)
        for number, rows in _passes(many).items():
            again = [row for row, times in rows.items() if times > max(once.get(number, Counter()).values(), default=1)]
            if again:
                return broken(
                    "each row equally often, whatever the number of workers",
                    f"with {which} number, {len(again)} of {len(rows)} rows of pass {number} come "
                    f"{rows[again[0]]} times",
                    other.journal.updates[0].where,
                    1,
                )
    return HELD


def _passes(run: Run) -> dict[int, Counter[str | int]]:
    """How often each row came, by the number of the pass."""
    found: dict[int, Counter[str | int]] = {}
    for batch in (each for update in run.journal.updates for each in update.batches):
        found.setdefault(batch.number, Counter()).update(batch.rows)
    return found
