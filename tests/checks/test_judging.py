"""Each check that judges facts, given facts that are made by hand."""

from __future__ import annotations

import inspect

import pytest

from harness import catalogue
from harness.watch.check import Check
from tests.checks.judging import Case, all_cases, is_as_said, judged


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_of_a_fact_a_check_says(case: Case) -> None:
    verdict = judged(case.check, case.fact)
    assert is_as_said(case, verdict), verdict


def test_each_check_is_shown_by_hand_what_it_can_say() -> None:
    """The fault, and each of held and nothing to judge that it knows."""
    shown: dict[str, set[str]] = {}
    for case in all_cases():
        shown.setdefault(case.check.id, set()).add(
            {"held": "HELD", "nothing to judge": "NOTHING"}.get(case.said, "Found")
        )
    for name, check in catalogue.checks().items():
        assert issubclass(check, Check)
        source = inspect.getsource(check).replace(check.__doc__ or "", "")
        source = source.replace("NothingToJudge", "NOTHING")
        says = {each for each in ("Found", "HELD", "NOTHING") if each in source}
        assert says <= shown.get(name, set()), f"{name}: make the facts by hand in tests/checks/*/facts.py"
