from __future__ import annotations

from harness.vary.differences import Part, Run
from harness.vary.relation import Outcome, Relation, Tried, Way

PARTS: tuple[Part, ...] = ("rows", "contents", "number of updates")


class OnHashSeed(Relation):
    """With a different seed for Python's hashes, the script trains on different rows, or scores different rows.

    ## Why is this a bug?
    Python seeds string hashes differently in each process, so a set of strings has a different order each time. A
    split, a vocabulary or a list of files that goes through a set, or is sorted by a hash, differs from run to run even
    if everything is seeded. Held-out rows of one run are then training rows of the next.

    ## What to do
    Sort what comes out of a set: `sorted(set(words))`. Use hashlib where a hash decides.

    ## When it is right
    When the order of the rows is meant to differ each time.

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
        when = "with PYTHONHASHSEED=1 as with 0"
        rows = tried.same_rows(other, when, PARTS)
        if rows.result != "held":
            return rows
        numbers = tried.same_numbers(other, when)
        return numbers if numbers.result == "broken" else rows
