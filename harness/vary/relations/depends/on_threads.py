from __future__ import annotations

from harness.vary.differences import Part, Run
from harness.vary.relation import Outcome, Relation, Tried, Way

PARTS: tuple[Part, ...] = ("rows", "contents", "number of updates")


class OnThreads(Relation):
    """With a different number of threads, the script trains on different rows, or the same rows have different values.

    ## Why is this a bug?
    Threads affect how fast a sum is computed and in which order it is added up, so a loss may differ in its last
    digits. But if rows are split into as many parts as there are threads, and standardised or sorted part by part, they
    differ on another machine.

    ## What to do
    Compute statistics over all rows, and keep the data independent of the number of cores or threads.

    ## When it is right
    Never. Losses may differ by a thousandth.
    """

    new_since = "0.4.0"
    tries = "start it with a different number of threads"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        return Way(environment={"OMP_NUM_THREADS": "3"})

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        return tried.same_rows(other, "with 3 threads as with the usual number", PARTS)
