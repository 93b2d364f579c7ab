"""Rows that a script continues with after a kill, beside those it should: repeated, skipped, or in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.resume.attempt import Attempt, Parting
from harness.resume.plan import ends_of_epochs, epochs

Row = str | int
Kind = Literal["repeated", "skipped", "order", "window", "epoch skipped"]


FOLLOWED = 3
"""Updates whose rows are looked for among those of the uninterrupted run, where passes are not known."""


@dataclass(frozen=True)
class OtherRows:
    kind: Kind
    expected: str
    observed: str


def other_rows(attempt: Attempt) -> OtherRows | None:
    """What became of the rows at the first update that differs; None where they are the same."""
    parting = attempt.parting
    if attempt.anew or parting is None or not parting.rows_differ or not parting.whole.batches or attempt.new_rows:
        return None
    if not parting.resumed.batches:
        return OtherRows("order", "a batch", "no batch")
    own_batches = parting.resumed.batches[0].number == 0
    return _window(attempt, parting) or (_stream if own_batches else _sequence)(attempt, parting)


def _window(attempt: Attempt, parting: Parting) -> OtherRows | None:
    """The first accumulation window after the start lacks batches that were gone through before the kill."""
    whole, resumed = ([each.rows for each in update.batches] for update in (parting.whole, parting.resumed))
    pending = 0 if attempt.checkpoint is None else attempt.checkpoint.pending
    begun_within = resumed[0] in whole[1:]
    if parting.after or not (pending and begun_within):
        return None
    return OtherRows(
        "window",
        f"the gradients of {len(whole)} micro-batches in update {parting.update}",
        f"those of {len(resumed)}, beginning with the {_ordinal(whole.index(resumed[0]) + 1)}: the checkpoint was "
        f"written after {pending} of {len(whole)}, and the restart begins a new window",
    )


def _stream(attempt: Attempt, parting: Parting) -> OtherRows:
    """Judgement of batches of the script's own: which are an epoch can only be guessed, so they are one stream."""
    stream = [(update.at, row) for update in attempt.whole.updates for batch in update.batches for row in batch.rows]
    place = next(number for number, (update, _) in enumerate(stream) if update == parting.update)
    following = attempt.resumed.updates[parting.resumed.at - 1 :][:FOLLOWED]
    rows = [row for update in following for batch in update.batches for row in batch.rows]
    expected = f"the rows of update {parting.update}"
    begins = _begins_anywhere([row for _, row in stream], rows, place)
    if begins is None:
        own = next(each for each in epochs(attempt.whole) if each[-1][0] >= parting.update)
        before = sum(len(those) for update, those in own if update < parting.update)
        return OtherRows("order", expected, _another_order(_rows(own), before, rows))
    ends = ends_of_epochs(attempt.whole)
    starts = {0} | {number for number, (update, _) in enumerate(stream) if update - 1 in ends}
    observed = f"those of update {stream[begins][0]}"
    if begins < place and {begins, place} <= starts:
        return OtherRows("order", expected, f"{observed}: the order of an epoch is repeated")
    if begins < place:
        return OtherRows("repeated", expected, f"{observed}: {place - begins} rows are trained on a second time")
    kind: Kind = "epoch skipped" if {begins, place} <= starts else "skipped"
    return OtherRows(kind, expected, f"{observed}: {begins - place} rows are skipped")


def _begins_anywhere(stream: Sequence[Row], rows: Sequence[Row], place: int) -> int | None:
    """Index in the stream at which the rows begin, as near to ``place`` as they come."""
    found = [n for n, row in enumerate(stream) if row == rows[0] and list(stream[n : n + len(rows)]) == list(rows)]
    return min(found, key=lambda begins: abs(begins - place), default=None)


def _sequence(attempt: Attempt, parting: Parting) -> OtherRows:
    passes = [_rows(each) for each in epochs(attempt.whole)]
    number, place = _place(attempt, parting)
    own, rows = passes[number], _resumed_rows(attempt, parting)
    epoch, left = f"epoch {number + 1}", len(own) - place
    expected = f"the {left} remaining rows of {epoch}" if place else f"the {left} rows of {epoch} in their order"
    begins = _begins(own, rows)
    if begins is not None and begins < place:
        again = "it starts again with the first row" if begins == 0 else f"it continues from row {begins + 1}"
        return OtherRows("repeated", expected, f"{again}: {place - begins} rows are trained on a second time")
    if begins is not None and begins > place:
        return OtherRows("skipped", expected, f"{begins - place} rows of {epoch} are skipped")
    for other, those in enumerate(passes):
        begins = _begins(those, rows) if other != number else None
        if begins not in (0, place):
            continue
        if other > number and begins == 0 and place == 0:
            return OtherRows("epoch skipped", expected, f"the rows of epoch {other + 1}")
        if other > number and begins == 0:
            return OtherRows("skipped", expected, f"those of epoch {other + 1}: {left} rows are skipped")
        return OtherRows("order", expected, f"{epoch} continues in the order of epoch {other + 1}")
    return OtherRows("order", expected, _another_order(own, place, rows))


def _another_order(own: Sequence[Row], place: int, rows: Sequence[Row]) -> str:
    before, after = set(own[:place]), set(own[place:])
    again, never = len(before.intersection(rows)), len(after.difference(rows))
    if place and (again or never):
        return f"a different order: {again} rows are trained on a second time, and {never} are skipped"
    return "a different order"


def _place(attempt: Attempt, parting: Parting) -> tuple[int, int]:
    """The epoch of the uninterrupted run that the update is in, and how many of its rows come before, from 0."""
    for number, epoch in enumerate(epochs(attempt.whole)):
        before = 0
        for update, rows in epoch:
            if update == parting.update:
                return number, before
            before += len(rows)
    raise AssertionError("every update with a batch is in an epoch")


def _rows(batches: Sequence[tuple[int, Sequence[Row]]]) -> list[Row]:
    return [row for _, rows in batches for row in rows]


def _resumed_rows(attempt: Attempt, parting: Parting) -> list[Row]:
    """What the script goes on with from there, up to the end of its pass."""
    for epoch in epochs(attempt.resumed):
        rest = [(update, rows) for update, rows in epoch if update >= parting.resumed.at]
        if rest:
            return _rows(rest)
    raise AssertionError("every update with a batch is in an epoch")


def _begins(whole: Sequence[Row], rows: Sequence[Row]) -> int | None:
    """Index in an epoch at which the rows begin, if they follow its order; a pass ends with its epoch at the latest."""
    if not rows or rows[0] not in whole:
        return None
    begins = whole.index(rows[0])
    return begins if list(whole[begins : begins + len(rows)]) == list(rows) else None


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
