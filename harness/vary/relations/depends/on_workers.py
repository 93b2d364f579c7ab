from __future__ import annotations

from harness.vary.differences import Part, Run, parting
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks

PARTS: tuple[Part, ...] = ("rows", "number of updates")


class OnWorkers(Relation):
    """With another number of DataLoader workers, other rows are trained with, or rows come twice.

    ## Why is this a bug?
    Workers fetch rows faster, and decide nothing. A stream that does not divide itself among its workers gives each row
    once per worker, and a dataset that remembers which row comes next gives others.

    ## What to do
    In an `IterableDataset`, ask `torch.utils.data.get_worker_info()` which part is this worker's. In `__getitem__`, use
    the index alone.

    ## When it is right
    When the order of a stream is meant to depend on its workers.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset
    """

    new_since = "0.4.0"
    kind = "workers"
    tries = "load the training rows with two workers, or with none"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        return cls.of_loaders(tried.trained) if tried.trained else "no DataLoader is trained with"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if (itself := parting(tried.first, tried.again, PARTS)) is not None:
            return lacks(f"two starts as the script is train with other rows in update {itself.update}")
        apart = parting(tried.first, other, PARTS)
        if apart is None:
            return HELD
        return broken(
            "the same rows in the same order with another number of workers",
            f"{apart.what} in update {apart.update}",
            apart.where,
            apart.update,
        )
