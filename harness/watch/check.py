"""Check: a method that judges a fact, and its page.

docs/contributing.md walks through the making of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Literal

from harness.catalogue import CHECKS, Fault
from harness.findings import NOT_SEEN
from harness.watch.bus import OutcomeListener, Told
from harness.watch.events import Event, Fact, NotKnown
from harness.watch.monitor import Monitor


class Outcome(Enum):
    HELD = "held"


HELD = Outcome.HELD
"""The fault would have been seen, and was not there."""


@dataclass(frozen=True)
class NothingToJudge:
    """The fault would not have been seen."""

    why: str | None = None
    """The reason that is shown; None stands for "no" with what the check needs, "that would show it"."""


NOTHING_TO_JUDGE = NothingToJudge()


@dataclass(frozen=True)
class Found:
    """The fault, as a check sees it in a fact."""

    expected: str
    observed: str
    where: str | None = None
    """FILE:LINE of the user's line at fault, where that is another than the fact's."""
    update: int | None = None
    """Where it is about another update than the fact."""
    hint: str | None = None
    """What to do in this very case, where that is more than the first paragraph of "What to do"."""
    may_be_meant: bool = False
    """Whether this very case may be meant: then it is a warning, though the fault is an error."""
    details: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What a repair must know of it, by name; "case" where a check finds its fault in several."""


Verdict = Outcome | NothingToJudge | Found

SPANS = ("none", "first", "all")


class Check(Fault, OutcomeListener, package=CHECKS):
    """One statement that holds of every right training loop.

    The first sentence of a subclass's docstring says what is wrong where it reports something; the sections that follow
    are its page (:class:`harness.catalogue.Fault`). It judges facts, or events: ``def judge(self, fact: GradientsUsed)
    -> Verdict`` is called with each, and further methods ``judge_…`` with others. It returns HELD where the fault would
    have been seen and was not, NOTHING_TO_JUDGE where it would not have been seen, and else what it :class:`Found`.
    NotKnown, which a fact may raise, leaves a note. A check that raises anything else is left out from then on, and the
    outcome says so.
    """

    takes = ("judge",)
    in_windows: ClassVar[Literal["none", "first", "all"]] = "none"
    """Whether it can judge a run of which a few updates at a time are seen (:mod:`harness.watch.windows`): by the facts
    that it judges, where it does not say so itself."""
    needs: ClassVar[str] = "training that it fits"
    """What must be there for it to judge, as it reads after "no": by the fact that it judges, where it does not say so
    itself."""
    looked = False
    """Whether it has judged something."""
    _why: str | None = None
    _told = False
    """Whether it was told of anything, be it of nothing that it could judge."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if handlers := [name for name in vars(cls) if name.startswith("on_")]:
            raise TypeError(
                f"{cls.__qualname__}.{handlers[0]}: a check judges facts; a recogniser makes them of events"
            )
        judged = [kind for kinds in cls.told_of.values() for kind in kinds]
        facts = [kind for kind in judged if issubclass(kind, Fact)]
        if facts and "needs" not in vars(cls):
            cls.needs = facts[0].needs
        if facts and "in_windows" not in vars(cls):
            spans = [kind.in_windows if issubclass(kind, Fact) else "none" for kind in judged]
            cls.in_windows = min(spans, key=SPANS.index)

    def __init__(self, monitor: Monitor | None = None) -> None:
        self._monitor = monitor
        """What its findings are reported to."""

    def subscriptions(self) -> Iterator[Told]:
        for kind, judge in super().subscriptions():
            yield kind, partial(self._judged, judge)

    def _judged(self, judge: Callable[[Any], Any], fact: Event) -> None:
        monitor = self._monitor
        assert monitor is not None
        try:
            verdict = judge(fact)
        except NotKnown as error:
            monitor.note(str(error))
            return
        if isinstance(verdict, NothingToJudge):
            self._why, self._told = verdict.why or self._why, True
            return
        self.looked = True
        if isinstance(verdict, Found):
            where = verdict.where or getattr(fact, "where", None) or monitor.locator.script_place
            at_hand = None if fact.of_run else fact.at.update
            update = at_hand if verdict.update is None else verdict.update
            finding = self.finding(verdict.expected, verdict.observed, where, update, verdict.hint)
            finding = replace(finding, details=verdict.details)
            monitor.report(replace(finding, severity="warning") if verdict.may_be_meant else finding)

    def lacks(self) -> str:
        """Why it has judged nothing: what it needs was not seen, which is not to say that it is not there; or it was
        there, and the fault would not have shown."""
        return self._why or f"no {self.needs}{' that would show it' * self._told}{NOT_SEEN}"
