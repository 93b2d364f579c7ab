"""What several losses ask of an attempt."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.digests import differing
from harness.resume.attempt import Attempt, Parting
from harness.resume.loss import Evidence
from harness.resume.plan import epochs
from harness.resume.rows import Kind, other_rows
from harness.starts.journal import Journal, Saved

SCORE = re.compile(r"best|patience|wait|bad_epochs|no_improve|without|stale|since", re.IGNORECASE)
"""Names of what decides which checkpoint is best and when to stop."""


def evidence_of_rows(attempt: Attempt, kind: Kind) -> Evidence | None:
    """What became of the rows, if it is this."""
    found = other_rows(attempt)
    if found is None or found.kind != kind or attempt.parting is None:
        return None
    if kind == "window":
        return Evidence(found.expected, found.observed, attempt.save_line, attempt.parting.update)
    batches = attempt.parting.resumed.batches
    line = (batches[0].where if batches else None) or attempt.load_line
    elsewhere = drawn_from(attempt, attempt.parting) if attempt.parting.after == 0 else []
    too = f"; {' and '.join(elsewhere)} would draw different random numbers, too" if elsewhere else ""
    return Evidence(found.expected, f"{found.observed}{too}", line, attempt.parting.update)


def drawn_from(attempt: Attempt, parting: Parting) -> list[str]:
    """The generators that are not where they should be: those that this update draws from, if it is known."""
    number = parting.update - 1
    differ = parting.lost_generators
    if number == 0:
        return differ
    moved = differing(attempt.whole.updates[number - 1].random, parting.whole.random)
    return [name for name in differ if name in moved] or differ


def stops_by_score(attempt: Attempt) -> bool:
    """Whether there are updates too many because the script decides by what it measures when to stop, and not because
    it goes through all of its epochs once more."""
    evaluates = any(update.evaluations for update in attempt.whole.updates)
    as_many = len(epochs(attempt.resumed)) == len(epochs(attempt.whole)) and attempt.epochs_behind
    return attempt.excess > 0 and evaluates and not as_many


def end_differs(attempt: Attempt) -> bool:
    """Whether a model that is not trained has other weights where it is evaluated after the last update."""
    whole, resumed = attempt.whole.end, attempt.resumed.end
    return whole is not None and resumed is not None and bool(differing(whole.others, resumed.others))


def other_values(attempt: Attempt) -> Iterator[tuple[Saved, Saved, str]]:
    """Values that a file holds which the same file does not without the kill: both files, and the key."""
    whole, again, resumed = (_files(each) for each in (attempt.whole, attempt.again, attempt.resumed))
    for (at, path), saved in whole.items():
        there = resumed.get((at - attempt.origin, path))
        if at <= attempt.origin or there is None or (at, path) not in again:
            continue
        random = differing(saved.values, again[at, path].values)
        for key in differing(saved.values, there.values):
            if key not in random:
                yield saved, there, key


def other_files(attempt: Attempt) -> tuple[Saved, int, bool] | None:
    """The first file that is written although it is not without the kill, or not although it is; after which update,
    and which of both."""
    whole, again, resumed = (_files(each) for each in (attempt.whole, attempt.again, attempt.resumed))
    expected = {key: saved for key, saved in whole.items() if key in again and key[0] > attempt.origin}
    found = {(at + attempt.origin, path): saved for (at, path), saved in resumed.items() if at}
    paths = {path for _, path in whole}
    # What the killed start began to write may be there, and need not be written again.
    begun = {(saved.at, saved.path) for saved in attempt.killed.saves if attempt.kill.moment is not None}
    for key in sorted((expected.keys() ^ found.keys()) - begun):
        if key not in found:
            return expected[key], key[0], False
        if key[1] in paths:
            return found[key], key[0], True
    return None


def _files(journal: Journal) -> dict[tuple[int, str], Saved]:
    """Finished files by the updates made before and the path; of several the last."""
    return {(saved.at, saved.path): saved for saved in journal.saves if saved.done}
