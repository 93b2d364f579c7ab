"""Facts that are made by hand, and what a check says of each: no training, so a case costs microseconds.

``tests/checks/FAMILY/facts.py`` has the cases of a family, ``test_judging.py`` runs them all.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from harness.watch.check import Check, Found, Held, NothingToJudge, Verdict
from harness.watch.events import Event

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Values:
    """What a static judge is given."""

    by_name: Mapping[str, Any]
    judge: str = "judge"


def values(judge: str = "judge", /, **by_name: Any) -> Values:
    return Values(by_name, judge)


@dataclass(frozen=True)
class Case:
    check: type[Check]
    fact: Event | Values
    verdict: Held | NothingToJudge | str
    """HELD, NOTHING_TO_JUDGE, or words of what it observes where it finds the fault."""

    @property
    def name(self) -> str:
        fact = self.fact.judge if isinstance(self.fact, Values) else type(self.fact).__name__
        return f"{self.check.id}: {fact}, {self.said}"

    @property
    def said(self) -> str:
        if isinstance(self.verdict, str):
            return self.verdict
        return "held" if isinstance(self.verdict, Held) else "nothing to judge"


@cache
def all_cases() -> list[Case]:
    """The cases of all families."""
    files = sorted(FOLDER.glob("*/facts.py"))
    return [case for file in files for case in importlib.import_module(f"tests.checks.{file.parent.name}.facts").CASES]


def judged(check: type[Check], fact: Event | Values) -> Verdict:
    """What a check says of a fact."""
    if isinstance(fact, Values):
        return cast(Verdict, getattr(check, fact.judge)(**fact.by_name))
    methods = [name for name, kinds in check.told_of.items() if type(fact) in kinds]
    assert len(methods) == 1, f"{check.id} judges {type(fact).__name__} in {len(methods)} methods"
    return cast(Verdict, getattr(check(), methods[0])(fact))


def is_as_said(case: Case, verdict: Verdict | None) -> bool:
    """Whether a check says of its fact what the case says."""
    if isinstance(case.verdict, str):
        return isinstance(verdict, Found) and case.verdict in verdict.observed
    return verdict == case.verdict
