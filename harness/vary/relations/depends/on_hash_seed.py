from __future__ import annotations

from harness.vary.differences import Another, Part, Run, first_loss, parting
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks

PARTS: tuple[Part, ...] = ("rows", "contents", "number of updates")


class OnHashSeed(Relation):
    """With another seed of Python's hashes, other rows are trained with, or scored.

    ## Why is this a bug?
    Python seeds the hashes of strings anew in each process, and a set of strings has another order each time. A split,
    a vocabulary or a list of files that goes through a set, or that is sorted by a hash, is another in each run, also
    where everything is seeded: held-out rows of one run are training rows of the next.

    ## What to do
    Sort what comes out of a set: `sorted(set(words))`. Use hashlib where a hash decides.

    ## When it is right
    When the order of the rows is meant to be another each time.

    ## References
    - https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED
    """

    new_since = "0.4.0"
    tries = "start it with another PYTHONHASHSEED"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        return Way(environment={"PYTHONHASHSEED": "1"})

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if (itself := parting(tried.first, tried.again, PARTS)) is not None:
            return lacks(f"two starts as the script is train with other rows in update {itself.update}")
        apart = parting(tried.first, other, PARTS) or first_loss(tried.first, other)
        if apart is not None:
            return broken(
                "the same rows in the same order with PYTHONHASHSEED=1 as with 0",
                f"{apart.what} in update {apart.update}",
                apart.where,
                apart.update,
            )
        number = tried.numbers_apart(other)
        if not isinstance(number, Another):
            return HELD
        return broken(
            f"the same {number.name} with PYTHONHASHSEED=1 as with 0, {number.one.value:g}",
            f"{number.name} {number.other.value:g}, after the same updates",
            number.one.where,
        )
