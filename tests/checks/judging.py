"""Facts that are made by hand, and what a check says of each: no training, so a case costs microseconds.

``tests/checks/FAMILY/facts.py`` has the cases of a family, ``test_judging.py`` runs them all.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from harness.watch.check import Check, Found, Outcome, Verdict
from harness.watch.events import Event

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    check: type[Check]
    fact: Event
    verdict: Outcome | str
    """HELD, NOTHING_TO_JUDGE, or words of what it observes where it finds the fault."""

    @property
    def name(self) -> str:
        said = self.verdict.value if isinstance(self.verdict, Outcome) else self.verdict
        return f"{self.check.id}: {type(self.fact).__name__}, {said}"


@cache
def all_cases() -> list[Case]:
    """The cases of all families."""
    files = sorted(FOLDER.glob("*/facts.py"))
    return [case for file in files for case in importlib.import_module(f"tests.checks.{file.parent.name}.facts").CASES]


def judged(check: type[Check], fact: Event) -> Verdict:
    """What a check says of a fact."""
    made = check(cast(Any, None))  # no monitor: a check that judges facts asks for nothing
    methods = [name for name, kinds in check.told_of.items() if name.startswith("judge") and type(fact) in kinds]
    assert len(methods) == 1, f"{check.id} judges {type(fact).__name__} in {len(methods)} methods"
    return cast(Verdict, getattr(made, methods[0])(fact))


def is_as_said(case: Case, verdict: Verdict) -> bool:
    """Whether a check says of its fact what the case says."""
    if isinstance(case.verdict, Outcome):
        return verdict is case.verdict
    return isinstance(verdict, Found) and case.verdict in verdict.observed
