"""Check and Fact: what looks at the events of a loop.

A check is one class in one file, ``checks/<family>/<id>.py``, and has one id, which names the fault.
docs/contributing.md walks through the making of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from harness.catalogue import CHECKS, Fault
from harness.watch.events import Listener
from harness.watch.monitor import Monitor


class Fact(Listener):
    """What several checks need to know of a loop, kept once: ``monitor.fact(OfThisClass)`` gives it.

    A fact is told of an event before the checks are, and reports nothing itself.
    """

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor


class Onlooker(Listener):
    """A listener that judges nothing."""

    id: ClassVar[str]
    looked = True

    def lacks(self) -> str:
        return ""

    def summary(self) -> None:
        return None

    def compare(self, summaries: Sequence[Any]) -> None:
        pass


class Check(Fault, Listener, package=CHECKS):
    """One statement that holds of every right training loop.

    The first sentence of a subclass's docstring says what is wrong where it reports something; the sections that follow
    are its page (:class:`harness.catalogue.Fault`). It overrides the handlers of the events that it needs, sets
    ``looked`` where it judges, and calls :meth:`found`. A check that raises is left out from then on, and the outcome
    says so.
    """

    in_windows: ClassVar[Literal["none", "first", "all"]] = "none"
    """Whether it can judge a run of which a few updates at a time are seen (:mod:`harness.watch.windows`): the first
    ones, which are seen from the beginning, or any. It must not take for absent what it did not see, look at a whole
    epoch, evaluation or schedule, call a model again, or copy what is large."""
    needs: ClassVar[str] = "training that it fits"
    """What must be there for it to look, as it reads after "no": "learning rate scheduler"."""
    looked = False
    """Whether it has judged something: what it needs was there. Set where the judging begins, and not before."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor

    def found(
        self,
        *,
        expected: str,
        observed: str,
        where: str | None = None,
        update: int | None = None,
        hint: str | None = None,
    ) -> None:
        """Report the fault; of each check the first reports are kept, on different lines.

        Args:
            where: FILE:LINE of the user's line at fault; without one the script itself.
            update: the number of the update, counted from 1, where it is about one.
            hint: what to do in this very case, where that is more than the first paragraph of "What to do".
        """
        self.looked = True
        where = where or self.monitor.locator.script_place
        self.monitor.report(self.finding(expected, observed, where, update, hint))

    def lacks(self) -> str:
        """Why it did not look."""
        return f"no {self.needs}"

    def summary(self) -> Any:
        """What this rank knows, as JSON, for a check that compares ranks; None for others."""
        return None

    def compare(self, summaries: Sequence[Any]) -> None:
        """Compare the ranks' summaries, this one's first; called on the first of several ranks when all are over."""
