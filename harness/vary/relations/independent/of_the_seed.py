from __future__ import annotations

import re

from harness.vary.differences import Run, parting
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken

ARGUMENT = re.compile(r"^(?:--?)?(?:[\w.-]*[._-])?seed$")
DECLARED = re.compile(r"""["'](--?seed)["']""")

OTHER = "4242"


class OfTheSeed(Relation):
    """With a different seed among its arguments, the script trains exactly as before.

    ## Why is this a bug?
    A seed argument exists to be changed: to see how much results vary, or to average over runs. If it has no effect,
    all runs are the same run, and their spread of 0 means nothing.

    ## What to do
    Use the argument wherever random numbers are seeded, before the model is made, and leave out fixed seeds.

    ## When it is right
    A training without randomness: rows in a fixed order, weights from a checkpoint, no dropout.
    """

    new_since = "0.4.0"
    severity = "warning"
    tries = "give it another seed"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        words = list(tried.arguments)
        for place, word in enumerate(words):
            name, sign, value = word.partition("=")
            if ARGUMENT.match(name) and sign and value.isdigit():
                words[place] = f"{name}={int(value) + 1}"
                return Way(arguments=tuple(words))
            following = words[place + 1] if place + 1 < len(words) else ""
            if ARGUMENT.match(word) and word.startswith("-") and following.isdigit():
                words[place + 1] = str(int(following) + 1)
                return Way(arguments=tuple(words))
        if (declared := DECLARED.search(tried.text)) is not None:
            return Way(arguments=(*words, declared[1], OTHER))
        return "no argument of the script is its seed"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if parting(tried.first, other) is not None:
            return HELD
        return broken(
            "different weights or a different order of the rows with a different seed",
            f"the same {len(other.journal.updates)} updates, bit for bit",
            tried.first.journal.updates[0].where,
            1,
        )
