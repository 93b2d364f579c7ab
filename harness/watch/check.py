"""Check: what looks at a training and judges it, and its page.

A check that looks for itself has handlers of events, as a recogniser has, and a static ``judge`` of plain values::

    class DrawnAlike(Check):
        '''The same permutation is drawn in each epoch, because the generator is seeded again. …'''

        needs = "permutations that the script draws while it trains"

        def on_drawn(self, event: Drawn) -> None:
            …
            self.says(self.judge(rows=64, times=3), where=event.where, update=event.at.update)

        @staticmethod
        def judge(rows: int, times: int) -> Verdict: …

One that judges what several look at takes its fact: ``def judge(self, fact: GradientsUsed) -> Verdict``.
docs/contributing.md walks through the making of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

from harness.catalogue import CHECKS, Fault
from harness.findings import NOT_SEEN
from harness.watch.bus import OutcomeListener, Told
from harness.watch.events import Event, Fact, NotKnown
from harness.watch.monitor import Monitor
from harness.watch.recogniser import Observer


@dataclass(frozen=True)
class Held:
    """The fault would have been seen, and was not there."""

    looked_at: str = field(default="", compare=False)
    """What was looked at, as ``check -v`` shows it: "60 evaluated rows, none of them trained on"."""


HELD = Held()


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


Verdict = Held | NothingToJudge | Found

SPANS = ("none", "first", "all")


class Check(Fault, OutcomeListener, Observer, package=CHECKS):
    """One statement that holds of every right training loop.

    The first sentence of a subclass's docstring says what is wrong where it reports something; the sections that follow
    are its page (:class:`harness.catalogue.Fault`). It judges facts, or events: ``def judge(self, fact: GradientsUsed)
    -> Verdict`` is called with each, and further methods ``judge_…`` with others. What no other looks at it looks at
    itself, in methods ``on_…``, and judges plain values in a static ``judge``. The verdict is HELD where the fault
    would have been seen and was not, NOTHING_TO_JUDGE where it would not have been seen, and else what it
    :class:`Found`. NotKnown, which a fact may raise, leaves a note. A check that raises anything else is left out from
    then on, and the outcome says so.
    """

    takes = ("judge", "on_")
    in_windows: ClassVar[Literal["none", "first", "all"]] = "none"
    """Whether it can judge a run of which a few updates at a time are seen (:mod:`harness.watch.windows`): by the facts
    that it judges, where it does not say so itself."""
    needs: ClassVar[str] = "training that it fits"
    """What must be there for it to judge, as it reads after "no": by the fact that it judges, where it does not say so
    itself."""
    looked = False
    """Whether it has judged something."""
    looked_at = ""
    """What that was, where the latest verdict that has held says so."""
    _why: str | None = None
    _told = False
    """Whether it was told of anything, be it of nothing that it could judge."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        judged = [kind for name, kinds in cls.told_of.items() if name.startswith("judge") for kind in kinds]
        facts = [kind for kind in judged if issubclass(kind, Fact)]
        if facts and "needs" not in vars(cls):
            cls.needs = facts[0].needs
        if facts and "in_windows" not in vars(cls):
            spans = [kind.in_windows if issubclass(kind, Fact) else "none" for kind in judged]
            cls.in_windows = min(spans, key=SPANS.index)

    def __init__(self, monitor: Monitor | None = None) -> None:
        if monitor is not None:  # what its findings are reported to; a judge needs none
            self.monitor = monitor
            self.begin()

    def subscriptions(self) -> Iterator[Told]:
        for name, kinds in self.told_of.items():
            handle = getattr(self, name)
            for kind in kinds:
                yield kind, partial(self._judged, handle) if name.startswith("judge") else handle

    def _judged(self, judge: Callable[[Any], Any], fact: Event) -> None:
        try:
            verdict = judge(fact)
        except NotKnown as error:
            self.monitor.note(str(error))
            return
        self.says(verdict, getattr(fact, "where", None), None if fact.of_run else fact.at.update)

    def says(self, verdict: Verdict, where: str | None = None, update: int | None = None) -> None:
        """Keep a verdict, and report what it found: at ``where`` and in ``update``, unless it names others itself."""
        if isinstance(verdict, NothingToJudge):
            self._why, self._told = verdict.why or self._why, True
            return
        self.looked = True
        if isinstance(verdict, Held):
            self.looked_at = verdict.looked_at or self.looked_at
        elif isinstance(verdict, Found):
            where = verdict.where or where or self.monitor.locator.script_place
            update = update if verdict.update is None else verdict.update
            finding = self.finding(verdict.expected, verdict.observed, where, update, verdict.hint)
            finding = replace(finding, details=verdict.details)
            self.monitor.report(replace(finding, severity="warning") if verdict.may_be_meant else finding)

    def lacks(self) -> str:
        """Why it has judged nothing: what it needs was not seen, which is not to say that it is not there; or it was
        there, and the fault would not have shown."""
        return self._why or f"no {self.needs}{' that would show it' * self._told}{NOT_SEEN}"
