from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CannotTry
from harness.findings import Finding, NotApplicable, StageCheck, code_frame, expect, told


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
    assert (finding.check, finding.severity, finding.message) == (
        *("stage::name", severity, "Does not hold: It holds."),
    )


def test_what_is_wrong_heads_the_finding() -> None:
    def function(observed: int) -> Iterator[Finding]:
        yield Finding(expected="1", observed=f"{observed}", hint="Make it 1.")
        yield Finding(expected="1", observed=f"{observed}", hint="Make it 1.", message=f"It is {observed}.")

    findings = _check(function, fault="It does not.")(2).findings
    assert [each.message for each in findings] == ["It does not.", "It is 2."]


def test_a_crash_is_never_a_pass() -> None:
    def function(observed: int) -> Iterator[Finding]:
        nothing: dict[str, list[Finding]] = {}
        yield from nothing["missing"]

    (finding,) = _check(function)(1).findings
    assert finding.observed == "KeyError: 'missing'"


def test_not_applicable_is_no_pass_either() -> None:
    def function(observed: int) -> Iterator[Finding]:
        yield from ()
        raise NotApplicable("too early")

    result = _check(function)(1)
    assert (result.outcome, result.reason, result.failed) == ("not applicable", "too early", False)


def test_what_cannot_be_tried_is_no_finding() -> None:
    def function(observed: int) -> Iterator[Finding]:
        yield from ()
        raise CannotTry("no weights")

    with pytest.raises(CannotTry, match="no weights"):
        _check(function)(1)


def test_the_line_of_a_place_stands_between_its_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("import torch\n\tfor batch in loader:\n\t\tstep(" + "x" * 200 + ")\n\n")
    assert code_frame(f"{file}:2") == [
        "  1 | import torch",
        "> 2 |     for batch in loader:",
        f"  3 |         step({'x' * 84}...",
    ]
    assert code_frame(f"{file}:3")[-1] == "  4 |"
    for nowhere in (None, "row 3", f"{file}:1", f"{file}:4", f"{file}:9", f"{tmp_path}/absent.py:3", "<stdin>:2"):
        assert code_frame(nowhere) == []


def test_a_notebooks_cell_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = (30, None, ["model(x)\n", "optimizer.step()\n"], "<ipython-input-1-abc>")
    monkeypatch.setitem(linecache.cache, "<ipython-input-1-abc>", cell)
    assert code_frame("<ipython-input-1-abc>:2") == ["  1 | model(x)", "> 2 | optimizer.step()"]


def test_expect_finds_what_is_not_equal_and_nothing_else() -> None:
    assert not list(expect({"a", "b"}, {"b", "a"}, hint="None."))
    (found,) = expect({"b", "a"}, set(), of="columns", where="split train", hint="Name them.")
    assert (found.expected, found.observed) == ("columns a, b", "columns none")
    assert (found.where, found.hint) == ("split train", "Name them.")
    (found,) = expect(3, float("nan"), update=2, hint="None.")
    assert (found.expected, found.observed, found.update) == ("3", "nan", 2)


def test_json_has_no_details() -> None:
    """Repairs read them, and nobody else: their names may change."""
    finding = Finding("1", "2", "fix it", details={"case": "one-class"})
    assert "details" not in finding.as_dict()
    assert asdict(finding).keys() - told(finding).keys() == {"details"}
