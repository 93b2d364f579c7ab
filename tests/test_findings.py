from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.errors import CannotTry
from harness.findings import Finding, NotApplicable, StageCheck


def _check(function: Callable[[int], Iterator[Finding]], **options: Any) -> StageCheck[int]:
    return StageCheck("stage::name", "claim", "It holds.", function, **options)


def test_holds() -> None:
    result = _check(lambda observed: iter(()))(1)
    assert (result.outcome, result.findings, result.failed) == ("holds", (), False)


@pytest.mark.parametrize(("severity", "failed"), [("error", True), ("warning", False)])
def test_finding_gets_the_checks_name(severity: str, failed: bool) -> None:
    def function(observed: int) -> Iterator[Finding]:
        yield Finding(expected="1", observed=f"{observed}", hint="Make it 1.")

    result = _check(function, severity=severity)(2)
    assert (result.outcome, result.failed) == ("fails", failed)
    (finding,) = result.findings
    assert (finding.check, finding.severity, finding.message) == ("stage::name", severity, "It holds.")


def test_a_crash_is_never_a_pass() -> None:
    def function(observed: int) -> Iterator[Finding]:
        yield from {}["missing"]

    (finding,) = _check(function)(1).findings
    assert finding.observed == "KeyError: 'missing'"


def test_not_applicable_is_no_pass_either() -> None:
    def function(observed: int) -> Iterator[Finding]:
        raise NotApplicable("too early")
        yield

    result = _check(function)(1)
    assert (result.outcome, result.reason, result.failed) == ("not applicable", "too early", False)


def test_what_cannot_be_tried_is_no_finding() -> None:
    def function(observed: int) -> Iterator[Finding]:
        raise CannotTry("no weights")
        yield

    with pytest.raises(CannotTry, match="no weights"):
        _check(function)(1)
