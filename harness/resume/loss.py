"""Loss: what a script can lose where it is killed, and how that shows.

A loss is one class in one file, ``losses/<fault>.py``, with the id ``resume::<fault>``; ``harness explain resume``
lists them.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.catalogue import LOSSES, Fault
from harness.findings import few
from harness.resume.attempt import Attempt


@dataclass(frozen=True)
class Evidence:
    """How a loss shows after one kill."""

    expected: str
    observed: str
    where: str | None = None
    """The line that saves, where something was not saved; else the line that loads."""
    update: int | None = None
    """The first that is another than without the kill, as the uninterrupted run counts them."""


class Loss(Fault, package=LOSSES, family="resume"):
    """One thing that is lost."""

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        """How it shows after this kill; None where it does not."""
        raise NotImplementedError


def several(names: list[str]) -> str:
    """Some names, and how many more there are."""
    return few(names, 3)
