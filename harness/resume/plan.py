"""Choice of where a script is killed, from what it did uninterrupted."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.starts.journal import Journal
from harness.starts.moments import Moment
from harness.starts.orders import KillPoint

Kind = Literal[
    "in an epoch",
    "during a save",
    "at the end of an epoch",
    "in an accumulation window",
    "after an update",
    "by SIGTERM",
    "one rank alone",
]


@dataclass(frozen=True)
class KillReport:
    """One kill, and what became of it."""

    at: int
    """Updates made until then."""
    resumed_from: int | None
    """The update after which the script went on; None where it began anew."""
    kind: str
    """Kind of place in the loop at which the script was killed."""
    lost: tuple[str, ...] = ()
    """What was lost, by the ids of the losses."""
    besides: bool = False
    """Whether it is one more than was asked for: right before a save that lost something, to see whose fault it is."""
    event: str | None = None
    """The file operation before or within which it was, with every_event."""
    where: str | None = None
    """The line of that operation."""
    again: int = 0
    """Updates that were lost with it, and are made once more."""
    ended: str | None = None
    """How it ended that was asked to by SIGTERM."""


@dataclass(frozen=True)
class Kill:
    kind: Kind
    place: KillPoint
    at: int
    """Updates made until then."""
    moment: Moment | None = None
    """The folder as the kill leaves it, where it is built, and nothing is killed."""
    rank: int | None = None
    """The one that is killed, where the others go on."""
    restarts: int = 0
    """How often its launcher starts all ranks again by itself."""
    grace: float | None = None
    """Seconds to end by itself after SIGTERM."""


def kills(whole: Journal, count: int, seed: int) -> list[Kill]:
    """``count`` places to kill a script at, as different as can be; fewer where it makes fewer updates.

    In the middle of an epoch first, going on from a checkpoint that was written within an epoch if there is one; then
    in the last file of a save, with another checkpoint before it; at the end of an epoch; in an accumulation window; in
    another file; and after any other updates.
    """
    chance = random.Random(seed)
    last, others = _during_a_save(whole)
    chosen: list[Kill] = []
    for candidates in (_in_an_epoch(whole), last, _at_an_end(whole), _in_a_window(whole), others):
        if candidates and len(chosen) < count:
            chosen.append(chance.choice(candidates))
    taken = {kill.place.update for kill in chosen}
    others = [kill for kill in after_each(range(1, len(whole.updates))) if kill.place.update not in taken]
    more = chance.sample(others, min(len(others), count - len(chosen)))
    return chosen + sorted(more, key=lambda kill: kill.at)


def asked_to_end(whole: Journal, grace: float, seed: int) -> list[Kill]:
    """A SIGTERM in an epoch, with so many seconds to end."""
    return [
        replace(kill, kind="by SIGTERM", place=KillPoint(update=kill.at), grace=grace) for kill in _one(whole, seed)
    ]


def ranks_alone(whole: Journal, processes: int, seed: int) -> list[Kill]:
    """Each rank killed alone; and the last one again, with a launcher that starts all of them anew."""
    alone = [
        replace(kill, kind="one rank alone", place=KillPoint(update=kill.at), rank=rank)
        for kill in _one(whole, seed)
        for rank in range(processes)
    ]
    return [*alone, *(replace(each, restarts=1) for each in alone[-1:])]


def _one(whole: Journal, seed: int) -> list[Kill]:
    """The first of :func:`kills`, where it can be made after an update; none where only one is made."""
    return [kill for kill in kills(whole, 1, seed) if kill.at]


def after_each(updates: Iterable[int]) -> list[Kill]:
    """A kill after each of these updates."""
    return [Kill("after an update", KillPoint(update=number), number) for number in updates]


def ends_of_epochs(whole: Journal) -> set[int]:
    """Updates with which a pass over the training rows ends."""
    return {each[-1][0] for each in epochs(whole)}


def epochs(journal: Journal) -> list[list[tuple[int, Sequence[str | int]]]]:
    """The batches of each pass as (update, rows). Batches of the script's own begin a pass where a row comes again."""
    found: list[list[tuple[int, Sequence[str | int]]]] = []
    number, seen = -1, set[str | int]()
    for update in journal.updates:
        for batch in update.batches:
            again = batch.number == 0 and not seen.isdisjoint(batch.rows)
            if batch.number != number or again:
                found.append([])
                number, seen = batch.number, set()
            seen.update(batch.rows)
            found[-1].append((update.at, batch.rows))
    return found


def _in_an_epoch(whole: Journal) -> list[Kill]:
    ends, ats = ends_of_epochs(whole), sorted({saved.at for saved in whole.checkpoints()})
    inside = [at for at in ats if at and at not in ends]
    last = len(whole.updates)
    candidates = [
        (update, before)
        for update in range(2, last)
        if update not in ends and (before := max((at for at in ats if at < update), default=0))
    ]
    preferred = [update for update, before in candidates if before in inside] or [update for update, _ in candidates]
    return [Kill("in an epoch", KillPoint(update=update), update) for update in preferred]


def _during_a_save(whole: Journal) -> tuple[list[Kill], list[Kill]]:
    """Kills in the last file of what is written together, from the second checkpoint on or of the only one; and kills
    in another file."""
    ats = sorted({saved.at for saved in whole.checkpoints()})
    later = set(ats[1:] or ats)
    numbers = {saved.at: saved.number for saved in whole.saves if saved.at in later}
    places = [
        Kill("during a save", KillPoint(file=saved.number), saved.at) for saved in whole.saves if saved.at in later
    ]
    last = [kill for kill in places if kill.place.file == numbers[kill.at]]
    return last, [kill for kill in places if kill not in last]


def _at_an_end(whole: Journal) -> list[Kill]:
    first = min((saved.at for saved in whole.checkpoints()), default=0)
    ends = [end for end in sorted(ends_of_epochs(whole)) if first < end < len(whole.updates)]
    return [Kill("at the end of an epoch", KillPoint(update=end), end) for end in ends]


def _in_a_window(whole: Journal) -> list[Kill]:
    first = min((saved.at for saved in whole.checkpoints()), default=0)
    return [
        Kill("in an accumulation window", KillPoint(backward=(update.at - 1, len(update.losses) // 2)), update.at - 1)
        for update in whole.updates
        if len(update.losses) > 1 and update.at - 1 >= max(first, 1)
    ]
