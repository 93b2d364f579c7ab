"""Rows that are others: what digests of them that are not the same say, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.describe.rows import COLUMNS
from harness.findings import few

ORDER, TOKENS, TOGETHER = "first_order", ("digest",), ("with_targets", "with_targets_bits")
DIGESTS = (ORDER, COLUMNS, *TOKENS, "digest_bits", *TOGETHER)
"""Last parts of the keys of facts that nobody can read."""

COUNTS = ("given", "different", "times_each", "rows", "first", "widths")
"""Facts from whose change another digest follows: then it says nothing more."""

ASKED = "asked"

MOST_COLUMNS_SHOWN = 6


def is_digest(key: str) -> bool:
    """Whether a fact is a digest of rows, which a sentence replaces."""
    return key.rpartition(".")[2] in DIGESTS


def of_what(key: str) -> str:
    """What a fact is of: its key without the last part."""
    return key.rpartition(".")[0]


def sentences(changed: Sequence[str], was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """What is otherwise with rows of which a digest has changed: the start of the facts' keys to a sentence.

    ``changed`` are the keys of the facts that are not the same, ``was`` and ``now`` all facts.
    """
    found = {}
    for of in dict.fromkeys(of_what(key) for key in changed if is_digest(key)):
        own = {key.removeprefix(f"{of}.") for key in changed if of_what(key) == of}
        if not own & {*COUNTS}:
            found[of] = _sentence(of, own, was, now)
    return found


def _sentence(of: str, changed: set[str], was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if ORDER in changed:
        return "the rows of the first pass come in a different order"
    one, other = was.get(f"{of}.{COLUMNS}"), now.get(f"{of}.{COLUMNS}")
    known = isinstance(one, list) and isinstance(other, list) and len(one) == len(other)
    if known and one != other:
        return f"the rows hold other values{_columns(one or [], other or [])}"
    asked = of.endswith(f".{ASKED}")
    if known:
        return f"each column has the same values, in other rows{'' if asked else ' or with other targets'}"
    together = next((each for each in TOGETHER if f"{of}.{each}" in was and f"{of}.{each}" in now), None)
    if not asked and changed & {*TOKENS} and together is not None and together not in changed:
        return "the same rows come in a different order"
    return f"the rows hold other values{'' if asked else ', or have other targets'}"


def _columns(was: Sequence[str], now: Sequence[str]) -> str:
    """Which columns are others, counted from 0."""
    apart = [place for place, (one, other) in enumerate(zip(was, now, strict=True)) if one != other]
    if sorted(was) == sorted(now):
        if len(apart) == 2:
            return f": columns {apart[0]} and {apart[1]} are exchanged"
        return f": columns {few(list(map(str, apart)), MOST_COLUMNS_SHOWN)} are in a different order"
    if len(apart) == len(was) > 1:
        return f" in all {len(was)} columns"
    return f" in column{'s' * (len(apart) > 1)} {few(list(map(str, apart)), MOST_COLUMNS_SHOWN)}"
