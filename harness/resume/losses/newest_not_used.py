from __future__ import annotations

import re

from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss
from harness.starts.journal import Journal, Saved


class NewestNotUsed(Loss):
    """The restarted script goes on from an older checkpoint, although a newer one was complete.

    ## Why is this a bug?
    The work between the two is done once more, after every kill, and nobody sees it: the weights are right for the
    checkpoint that was taken. Names are often sorted as text, so that `step-9` comes after `step-10`; or a file that
    names the latest checkpoint is written too seldom.

    ## What to do
    Choose the checkpoint by the number of its update, read as a number, and skip those that are not complete.

    ## When it is right
    When going back is meant, to the best checkpoint for instance; with one that holds less than the newer one, nothing
    is reported.
    """

    explains = ("resume::epoch-repeated",)

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        if attempt.anew or not attempt.origin or not attempt.resumed.updates:
            return None
        whole = [saved for saved in attempt.complete if saved.weights]
        used = [saved for saved in whole if saved.at == attempt.origin]
        newer = [saved for saved in whole if saved.at > attempt.origin]
        found = next((each for each in reversed(newer) if any(_stands_for(each, its, attempt) for its in used)), None)
        if found is None:
            return None
        return Evidence(
            f"to go on after update {found.at}, whose checkpoint is {found.path}",
            f"it goes on after update {attempt.origin}: {found.at - attempt.origin} updates are made once more",
            attempt.load_line,
            attempt.origin + 1,
        )


def _stands_for(newer: Saved, used: Saved, attempt: Attempt) -> bool:
    """Whether the newer file can be gone on from where the older one can: it is one of the same kind, or holds as much
    and is written whenever that is."""
    if _kind(newer.path) == _kind(used.path):
        return True
    return used.values.keys() <= newer.values.keys() and _times(used, attempt.whole) <= _times(newer, attempt.whole)


def _times(file: Saved, journal: Journal) -> set[int]:
    return {saved.at for saved in journal.saves if saved.done and _kind(saved.path) == _kind(file.path)}


def _kind(path: str) -> str:
    """A path with any numbers."""
    return re.sub(r"\d+", "*", path)
