"""Loss: what a script can lose where it is killed, and how that shows.

A loss is one class in one file, ``losses/<fault>.py``, with the id ``resume::<fault>``; ``harness explain resume``
lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness import catalogue
from harness.findings import Finding, Severity
from harness.resume.attempt import Attempt

FAMILY = "resume"


@dataclass(frozen=True)
class Evidence:
    """How a loss shows after one kill."""

    expected: str
    observed: str
    where: str | None = None
    """The line that saves, where something was not saved; else the line that loads."""
    update: int | None = None
    """The first that is another than without the kill, as the uninterrupted run counts them."""


class Loss:
    """One thing that is lost.

    Raises:
        TypeError: when a subclass is made whose id is not that of its file, or whose docstring lacks a section.
    """

    id: ClassVar[str]
    severity: ClassVar[Severity] = "error"
    formerly: ClassVar[tuple[str, ...]] = ()
    explains: ClassVar[tuple[str, ...]] = ()
    """Ids of losses that follow from this one after the same kill."""
    page: ClassVar[catalogue.Page]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        name = cls.__module__.rpartition(".")[2].replace("_", "-")
        if cls.id != f"{FAMILY}::{name}":
            raise TypeError(f"{cls.__qualname__} is in the file of {FAMILY}::{name}, and its id is {cls.id}")
        cls.page = catalogue.Page(cls.__qualname__, cls.__doc__ or "")
        catalogue.register(cls)

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        """How it shows after this kill; None where it does not."""
        raise NotImplementedError

    @classmethod
    def finding(cls, evidence: Evidence, script: str) -> Finding:
        return Finding(
            expected=evidence.expected,
            observed=evidence.observed,
            hint=cls.page.hint,
            where=evidence.where or f"{script}:1",
            update=evidence.update,
            check=cls.id,
            severity=cls.severity,
            message=cls.page.statement,
        )


def several(names: list[str]) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
