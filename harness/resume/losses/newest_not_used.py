from __future__ import annotations

from harness.resume.attempt import Attempt, kind_of
from harness.resume.loss import Evidence, Loss
from harness.starts.journal import IN_MEMORY, Journal, Saved


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

    since = "0.4.0"
    explains = ("resume::epoch-repeated",)

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        if attempt.anew or not attempt.used or not attempt.resumed.updates:
            return None
        newer = [saved for saved in attempt.complete if saved.weights and saved.at > attempt.origin]
        found = next((each for each in reversed(newer) if _can_stand_for(each, attempt)), None)
        if found is None:
            return None
        again = f"{found.at - attempt.origin} updates are repeated"
        was_removed = attempt.resumed.there and not _is_there(found, attempt)
        removed = "; it was written and then removed" if was_removed else ""
        return Evidence(
            f"to continue after update {found.at}, whose checkpoint is {found.path}",
            f"it continues after update {attempt.origin}: {again}{removed}",
            found.where if removed else attempt.load_line,
            attempt.origin + 1,
        )


def _is_there(file: Saved, attempt: Attempt) -> bool:
    return file.path in attempt.resumed.there


def _can_stand_for(newer: Saved, attempt: Attempt) -> bool:
    """Whether the script could go on from a newer file: it is one of the kind that it did go on from, here or after
    another kill; or it is there, holds as much, and is written whenever that is."""
    kind = kind_of(newer.path)
    if IN_MEMORY in (newer.path, *(used.path for used in attempt.used)):
        return False
    if kind in attempt.sources or all(kind_of(used.path) == kind for used in attempt.used):
        return True
    return _is_there(newer, attempt) and all(
        used.values.keys() <= newer.values.keys()
        and set() < _times(used, attempt.whole) <= _times(newer, attempt.whole)
        for used in attempt.used
    )


def _times(file: Saved, journal: Journal) -> set[int]:
    return {saved.at for saved in journal.saves if saved.done and kind_of(saved.path) == kind_of(file.path)}
