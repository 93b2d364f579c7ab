"""The page of ``harness report``: what it says of each input, and what it refuses."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.matrix import Matrix, merged
from harness.documented_run.record import Curves, RunRecord, unsigned
from harness.documented_run.stages import CLAIMS
from harness.report.html.inputs import read_inputs
from harness.report.html.page import FILE_NAME, page_of
from tests.baseline.conftest import make_record
from tests.report.pages import (
    BASELINES,
    CHECKS,
    COMPARED,
    DESCRIBED,
    FINDING,
    RESUMED,
    TAUGHT,
    WHOLE,
    checked,
    page,
    read,
    whole_run,
    written,
)

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, ["report", *map(str, arguments)])


def recorded_again(seed: int = 42) -> RunRecord:
    """The record of a run whose losses are the shipped baseline's, as far as a baseline keeps it."""
    baseline = Baseline.read(BASELINES / "tiny-plain-cpu.json")
    recorded = baseline.run(seed)
    assert recorded is not None
    assert baseline.lr is not None
    curves = Curves(loss=recorded.curve, lr=baseline.lr, grad_norm=[1.0] * WHOLE)
    given = {"fingerprint": recorded.fingerprint, "inputs": baseline.inputs, "metrics": recorded.metrics}
    return whole_run(seed, curves=curves, checks=CHECKS[:1], findings=[], **given)


# Runs


def test_a_run_says_first_what_it_came_to_and_what_fails(tmp_path: Path) -> None:
    found = page(written(tmp_path / "run.json", whole_run()))
    assert found.all("h2")[0].text == "tiny, plain loop, seed 42"
    (verdict,) = found.all("p", class_="verdict")
    assert re.match(r"failed 1 of 2 checks passed, 1377 of 1377 updates, accuracy 0\.\d{4}, f1 0\.\d{4}$", verdict.text)
    assert found.all("h3")[0].text == "Findings"
    (finding,) = found.all("li", class_="finding")
    assert "error tokenize::truncation" in finding.text
    for said in (FINDING.expected, FINDING.observed, FINDING.hint, FINDING.message):
        assert said in finding.text


def test_each_claim_stands_beside_what_was_observed(tmp_path: Path) -> None:
    found = page(written(tmp_path / "run.json", whole_run()))
    failed, held, other = found.all("details", class_="stage")
    assert "open" in failed.attributes
    assert "open" not in held.attributes
    claim = CLAIMS["split-sizes"]
    assert claim.sentence in held.text
    assert claim.section in held.text
    assert "3668" in held.text, "the documented numbers"
    assert f"observed {FINDING.observed}" in failed.text
    assert "about another recipe" in other.text


def test_recipe_machine_and_provenance_are_there(tmp_path: Path) -> None:
    found = page(written(tmp_path / "run.json", whole_run()))
    values = {
        row.all("dt")[0].text: row.all("dd")[0].text
        for part in found.all("dl", class_="values")
        for row in part.all("div")
    }
    assert values["batch size"] == "8"
    assert values["lr"] == "5e-05"
    assert "transformers 5.23.0" in values["libraries"]
    assert values["commit"] == "a" * 40
    assert values["command"] == "harness baseline record"
    assert "d" * 64 in values["inputs"]


def test_curves_lie_over_the_recorded_seeds(tmp_path: Path) -> None:
    found = page(written(tmp_path / "run.json", recorded_again()))
    loss, lr, norm = found.all("figure", class_="chart")
    assert [each.all("h4")[0].text for each in (loss, lr, norm)] == ["Loss", "Learning rate", "Gradient norm"]
    assert "least to greatest of 20 recorded seeds, means of 27 updates" in loss.text
    assert len(loss.all("polygon", class_="band")) == 1
    assert {line.attributes["class"] for line in lr.all("polyline")} == {"recorded", "run-0"}
    assert "least to greatest of 6 recorded seeds, means of 27 updates" in norm.text, "those whose norms were kept"
    assert len(norm.all("polygon", class_="band")) == 1
    assert any("the gradient norms of 6 of 20 seeds" in each.text for each in found.all("p", class_="note"))
    (raw,) = loss.all("polyline", class_="raw")
    points = [tuple(map(float, point.split(","))) for point in raw.attributes["points"].split()]
    assert len(points) == WHOLE
    low, high = float(loss.attributes["data-low"]), float(loss.attributes["data-high"])
    for number, value in enumerate(recorded_again().curves.loss):
        x, y = points[number]
        assert x == pytest.approx(1000 * number / (WHOLE - 1), abs=0.051)
        assert low + (1 - y / 200) * (high - low) == pytest.approx(value, abs=(high - low) / 3000)


def test_the_first_update_that_differs_is_marked(tmp_path: Path) -> None:
    record = recorded_again()
    assert "1377 losses are those of the recorded seed 42, bit for bit" in page(written(tmp_path / "a", record)).text
    record.curves.loss[700:] = [value * (1 + 1e-9) for value in record.curves.loss[700:]]
    within = page(written(tmp_path / "b", record))
    (rounded,) = within.all("text", class_="mark-text")
    assert rounded.text == "first differing update, within rounding: 701"
    assert not within.all("line", class_="fails")
    record.curves.loss[800:] = [value + 0.01 for value in record.curves.loss[800:]]
    found = page(written(tmp_path / "c", record))
    (mark,) = found.all("text", class_="mark-text")
    assert mark.text == "differs by more than rounding: 801"
    assert len(found.all("line", class_="fails")) == 1
    assert "First differs from the recorded seed 42 at update 701; more than rounding from update 801 on" in found.text


def test_metrics_have_the_interval_of_the_baseline(tmp_path: Path) -> None:
    found = page(written(tmp_path / "run.json", recorded_again()))
    accuracy, _ = found.all("div", class_="metric")
    assert len(accuracy.all("circle", class_="seed")) == 20
    low, high = map(float, re.findall(r"interval \(Student.s t\): (0\.\d+) to (0\.\d+)", accuracy.text)[0])
    recorded = Baseline.read(BASELINES / "tiny-plain-cpu.json").metric("accuracy")
    assert low < min(recorded) < max(recorded) < high
    assert "99% prediction interval" in accuracy.text
    (strip,) = accuracy.all("svg", class_="interval")
    least, most = (float(each.text) for each in strip.all("text"))
    assert least < low < high < most, "the ends of the strip have their numbers"


def test_a_stage_in_which_nothing_was_checked_is_told_apart(tmp_path: Path) -> None:
    found = page(written(tmp_path / "run.json", whole_run(42)))
    (empty,) = found.all("details", class_="empty")
    assert empty.all("span", class_="stage-name")[0].text == "schedule"
    assert "nothing to check: 1 did not apply" in empty.text


def test_digests_of_weights_have_sixteen_digits() -> None:
    """Those that earlier versions wrote, too."""
    assert unsigned("-000193762d1829d") == f"{2**64 - 0x193762D1829D:016x}"
    assert unsigned("0" * 15 + "7") == "0" * 15 + "7"
    assert all(len(each.weights) == 16 for each in Baseline.read(BASELINES / "tiny-plain-cpu.json").runs)


def test_a_baseline_among_the_inputs_is_taken(tmp_path: Path) -> None:
    paths = [written(tmp_path / "run.json", recorded_again()), BASELINES / "tiny-plain-cpu.json"]
    found = [read(page_of(read_inputs(each), baselines=tmp_path, fallback=None)) for each in (paths[:1], paths)]
    assert [len(each.all("polygon", class_="band")) for each in found] == [0, 2]
    assert "there is no baseline tiny-plain-cpu.json" in found[0].text


def test_a_run_without_a_baseline_says_why(tmp_path: Path) -> None:
    found = page(written(tmp_path / "run.json", whole_run(recipe={"lr": 1.0})))
    assert "recipe.lr is 5e-05 in the baseline and 1.0 in the run" in found.text
    assert not found.all("polygon", class_="band")


def test_numbers_that_are_none_leave_a_gap(tmp_path: Path) -> None:
    record = whole_run()
    record.curves.loss[10] = math.nan
    record.curves.grad_norm[:] = [math.inf] * WHOLE
    found = page(written(tmp_path / "run.json", record))
    loss, _ = found.all("figure", class_="chart")
    assert len(loss.all("polyline", class_="raw")) == 2
    assert "each update: not a finite number at 1 updates, first at update 11" in loss.text


def test_a_run_without_an_update_has_no_curves(tmp_path: Path) -> None:
    record = whole_run(updates=0, curves=Curves(loss=[], lr=[], grad_norm=[]), metrics={}, weights=None)
    assert not page(written(tmp_path / "run.json", record)).all("figure")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epochs": [{"accuracy": 0.5}]}, "and the last of epochs 0.5000"),
        ({"curves": Curves(loss=[0.5], lr=[], grad_norm=[])}, "1 entries of loss for 1377 updates"),
        ({"findings": [FINDING], "checks": [replace(CHECKS[0], check=FINDING.check)]}, "is among the findings"),
        ({}, None),
    ],
)
def test_a_record_that_was_edited_contradicts_itself(tmp_path: Path, change: dict[str, Any], said: str | None) -> None:
    record = whole_run(**({"findings": [], "checks": CHECKS[:1]} | change))
    assert record.whole
    found = page(written(tmp_path / "run.json", record))
    (verdict,) = found.all("p", class_="verdict")
    assert ("the record contradicts itself" in verdict.text) == (said is not None)
    lists = found.all("ul", class_="contradictions")
    assert [said in each.text for each in lists if said is not None] == [True] * (said is not None)


def test_an_old_record_is_shown(tmp_path: Path) -> None:
    found = page(Path(__file__).parents[1] / "run_of_schema_1.json")
    assert found.all("details", class_="stage")


def test_several_runs_are_compared_with_the_first(tmp_path: Path) -> None:
    first, other = recorded_again(), recorded_again()
    other.recipe["lr"] = 3e-5
    other.curves.lr[500:] = [0.0] * (WHOLE - 500)
    paths = [written(tmp_path / name / "run.json", each) for name, each in (("a", first), ("b", other))]
    found = page(*paths)
    glance = [item.text.split()[0] for item in found.all("ul", class_="glance")[0].all("li")]
    assert glance == ["differs", "passed", "passed"]
    part = found.all("section")[0]
    assert part.all("h2")[0].text == "2 runs side by side"
    differences = [item.text for item in part.all("ol", class_="differences")[0].all("li")]
    assert any(
        "compare::hyper-parameter: lr" in each and "A 5e-05 B 3e-05" in " ".join(each.split()) for each in differences
    )
    loss = part.all("figure")[0]
    assert [line.attributes["class"] for line in loss.all("polyline")] == ["run-0", "run-1"]
    assert len(found.all("figure")) == 3, "their curves are drawn once, together"


# Other inputs


def test_a_check_shows_the_script_the_remedy_and_the_page_of_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    found = page(written(Path("check.json"), checked("train.py")))
    (frame,) = found.all("pre", class_="frame")
    assert frame.text.splitlines() == ["  1 | one", "  2 | two", "> 3 | three", "  4 | four", "  5 | five", "  6 | six"]
    assert [line.text for line in frame.all("span", class_="meant")] == ["> 3 | three"]
    assert "Call optimizer.zero_grad()." in found.text
    headings = [heading.text for heading in found.all("h5")]
    assert headings == ["Why is this a bug?", "What to do", "When it is right", "References"]
    assert "no learning rate scheduler" in found.text
    assert "1 error in 8 updates, 1 check passed" in found.text


def test_only_lines_of_python_files_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that somebody sends may name any place."""
    monkeypatch.chdir(tmp_path)
    Path("secrets.env").write_text("one\ntwo\nthree\n")
    assert not page(written(Path("check.json"), checked("secrets.env"))).all("pre", class_="frame")


def test_a_script_that_was_changed_since_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("one\ntwo\nthree\n")
    file = written(Path("check.json"), checked("train.py"))
    os.utime("train.py", (1, 1))
    assert "has changed since" not in page(file).text
    os.utime(file, (0, 0))
    assert "has changed since" in page(file).text


def test_a_resume_shows_where_it_was_killed(tmp_path: Path) -> None:
    found = page(written(tmp_path / "found.json", RESUMED))
    assert "1 of 2 kills survived bit for bit" in found.text
    rows = [[cell.text for cell in (*row.all("th"), *row.all("td"))] for row in found.all("tr")][1:]
    assert rows[0] == ["9", "in an epoch", "from the beginning", "resume::began-anew"]
    assert rows[1] == ["11", "at an epoch's end", "after update 11", "nothing"]
    assert found.all("h5"), "the page of the loss"


def test_taught_tokens_are_marked_in_their_text(tmp_path: Path) -> None:
    found = page(written(tmp_path / "tokens.json", TAUGHT))
    assert "60 tokens of 100 carry a loss in 16 rows" in found.text
    (row,) = found.all("p", class_="tokens")
    assert [mark.text for mark in row.all("mark")] == ["<b>There.</b>"]
    assert [role.text for role in row.all("span", class_="role")] == ["user", "assistant"]
    assert row.text == "user<s>Where?assistant<b>There.</b>document 2Who?2 tokens of padding"
    assert "rows without any label: 1 of 16" in found.text
    assert "a note" in found.text
    assert found.all("span", class_="pill")[0].text == "warned"


def test_a_description_is_a_table_of_what_the_run_did(tmp_path: Path) -> None:
    found = page(written(tmp_path / "described.json", DESCRIBED))
    assert "what 12 updates did, in 2 facts" in found.text
    rows = [[cell.text for cell in row.all("td")] for row in found.all("tr")][1:]
    assert rows == [["data", "train: <60> rows", "tune.py:7"]]
    assert "Long passes over a DataLoader were cut" in found.text
    assert "a note" in found.text


def test_tokens_without_a_label_in_no_row_are_recorded(tmp_path: Path) -> None:
    found = page(written(tmp_path / "tokens.json", {**TAUGHT, "without_label": 0}))
    assert found.all("span", class_="pill")[0].text == "recorded"


def test_a_comparison_shows_what_differs(tmp_path: Path) -> None:
    found = page(written(tmp_path / "compared.json", COMPARED))
    assert "first difference at update 7: compare::hyper-parameter" in found.text
    (item,) = found.all("ol", class_="differences")[0].all("li")
    assert "5e-05" in item.text
    assert "classifier.weight" in item.text
    assert [row.text for row in found.all("dl", class_="values")[0].all("div")] == [
        "4.57.6as the first",
        "5.0.0differs",
    ]
    same = COMPARED | {"differences": []}
    assert "passed the same, bit for bit, in 50 updates" in page(written(tmp_path / "same.json", same)).text


def test_documents_show_what_fails_first(tmp_path: Path) -> None:
    block = {"document": "002", "file": "002.txt", "line": 3, "key": "k", "outcome": "runs", "number": 1, "label": "a"}
    failing = block | {
        "number": 2,
        "outcome": "fails",
        "says": "ImportError",
        "replacement": "torch.optim",
        "source": "x",
    }
    content = {
        "schema": 1,
        "recipe": {},
        "fingerprint": {},
        "provenance": {},
        "started": "now",
        "blocks": [block, failing],
    }
    found = page(written(tmp_path / "documents.json", content).parent)
    first, _ = found.all("ul", class_="statements")[0].all("li")
    assert "002:2" in first.text
    assert "torch.optim" in first.text


def test_the_matrix_is_a_table_with_every_row() -> None:
    found = page(BASELINES / "matrix.json")
    matrix = Matrix.read(BASELINES / "matrix.json")
    rows = [row for table in found.all("table", class_="matrix") for row in table.all("tbody")[0].all("tr")]
    assert len(rows) == len(list(merged(matrix.rows)))
    assert {"data-varies" in row.attributes for row in rows} == {True, False}
    assert all(len(row.all("td")) == 1 + len(matrix.columns) for row in rows)
    (filter_,) = found.all("div", class_="filter")
    assert "hidden" in filter_.attributes, "without a script there is nothing to filter with"


@pytest.mark.parametrize("path", sorted(BASELINES.glob("*-cpu.json")), ids=lambda path: path.stem)
def test_baselines_have_their_provenance(path: Path) -> None:
    found = page(path)
    stored: dict[str, Any] = json.loads(path.read_text())
    assert stored["reason"] in found.text
    assert found.all("tbody")[0].all("tr")
    assert stored["runs"][0]["command"] in found.text


# The file


def test_what_files_hold_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was read becomes an element or an attribute, wherever it stands."""
    monkeypatch.chdir(tmp_path)
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><b onclick=a>"
    script = "<script>alert(3)<.py"
    Path(script).write_text(f"1\n2\n{evil}\n4\n")
    report = checked(script, message=evil)
    report |= {"notes": [evil], "crashed": evil, "held": [evil], "not_looked_at": [{"check": evil, "why": evil}]}
    record = whole_run(recipe={"name": evil, evil: evil}, fingerprint={"device": evil, "libraries": {evil: evil}})
    record.findings.append(FINDING.__class__(evil, evil, evil, evil, 1, evil, "warning", evil))
    record.checks.append(CHECKS[0].__class__(evil, evil, evil, "not applicable", evil))
    matrix = Matrix.read(BASELINES / "matrix.json")
    matrix.rows[0].summary = matrix.rows[0].subject = matrix.columns[0].name = evil
    compared = COMPARED | {"a": evil, "notes": [evil], "beside": {evil: [evil, evil]}}
    paths = [
        written(tmp_path / "run.json", record),
        written(tmp_path / "again" / "run.json", record),
        written(tmp_path / "check.json", report),
        written(tmp_path / "resume.json", RESUMED | {"script": evil}),
        written(tmp_path / "compare.json", compared),
        written(tmp_path / "matrix.json", json.loads(matrix.as_json())),
    ]
    found = page(*paths)
    assert len(found.all("script")) == 1
    assert not [each for tag in ("img", "b", "iframe", "link") for each in found.all(tag)]

    def handlers(element: Any) -> list[str]:
        own = [name for name in element.attributes if name.startswith("on") or name in ("style", "src")]
        return own + [name for each in element.children if not isinstance(each, str) for name in handlers(each)]

    assert handlers(found) == []
    assert found.text.count("<script>alert(1)</script>") > 20, "all of it is there to read"


def test_nothing_is_loaded_and_nothing_else_may_run(tmp_path: Path) -> None:
    import base64
    import hashlib

    found = page(written(tmp_path / "run.json", whole_run()), BASELINES / "matrix.json")
    (policy,) = [meta for meta in found.all("meta") if meta.attributes.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    assert rules["default-src"] == "'none'"
    for tag in ("style", "script"):
        (own,) = found.all(tag)
        digest = base64.b64encode(hashlib.sha256(own.text.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    links = [link.attributes["href"] for link in found.all("a")]
    assert all(link.startswith("#") for link in links)


def test_a_whole_run_is_far_below_two_megabytes(tmp_path: Path, invoke: Invoke) -> None:
    record = recorded_again()
    record.checks[:] = [CHECKS[0].__class__(f"load::{n}", "load", name, "holds") for n, name in enumerate(CLAIMS)]
    written(tmp_path / "run" / "run.json", record)
    result = invoke("run", BASELINES / "matrix.json", BASELINES / "tiny-plain-cpu.json", "--output", "all.html")
    assert result.exit_code == 0, result.output
    assert Path("all.html").stat().st_size < 700_000
    assert invoke("run").exit_code == 0
    assert Path("run", FILE_NAME).stat().st_size < 350_000


def test_where_it_is_written(tmp_path: Path, invoke: Invoke) -> None:
    written(tmp_path / "runs" / "one" / "run.json", make_record())
    written(tmp_path / "data" / "check.json", checked("train.py"))
    for given, expected in (
        (["runs/one"], "runs/one/report.html"),
        (["runs/one/run.json", "data/check.json"], "runs/one/report.html"),
        (["data/check.json", "runs/one"], "check-report.html"),
        (["runs/one", "--output", "mine.html"], "mine.html"),
    ):
        result = invoke(*given)
        assert (result.exit_code, result.output) == (0, f"written to {expected}\n")
        assert Path(expected).read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON; expected run.json or documents.json"),
        ("[1]", "a report cannot show given.json; expected run.json"),
        ('{"schema": 1}', "a report cannot show"),
        ('{"schema": 1, "recipe": {}, "curves": {}}', "run record given.json: "),
        ('{"schema": 4, "kind": "check", "script": "a"}', "schema is 4, expected 3 (of a newer harness?)"),
        ('{"schema": 2, "kind": "scripts", "scripts": []}', "a report cannot show"),
        ('{"schema": 2, "kind": "check", "script": "a", "held": 3}', "given.json: held: Input should be a valid list"),
        ('{"schema": 2, "kind": "check", "script": "a", "nothing_to_look_at": 3}', "Input should be a valid list"),
        ('{"schema": 1, "script": "a", "held": 3}', "given.json: held: Input should be a valid list"),
        ('{"schema": 1, "script": 1, "kills": []}', "given.json: script: Input should be a valid string"),
        ('{"schema": 9, "columns": [], "rows": []}', "recorded matrix given.json: schema"),
        ("\udcff", "is not JSON"),
    ],
)
def test_other_files_are_refused(invoke: Invoke, tmp_path: Path, content: str, message: str) -> None:
    Path("given.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    result = invoke("given.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["given.json"]


def test_what_is_not_there_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    Path("empty").mkdir()
    assert "nowhere not found" in invoke("nowhere").stderr
    assert "there is no run.json and no documents.json in folder empty" in invoke("empty").stderr
    written(tmp_path / "run.json", make_record())
    unwritable = invoke(".", "--output", "nowhere/page.html")
    assert (unwritable.exit_code, "nowhere/page.html cannot be written" in unwritable.stderr) == (2, True)


def test_another_file_is_not_overwritten(invoke: Invoke, tmp_path: Path) -> None:
    written(tmp_path / "run.json", make_record())
    Path("train.py").write_text("mine")
    result = invoke(".", "--output", "train.py")
    assert result.exit_code == 2
    assert "train.py exists and is not a report" in result.stderr
    assert Path("train.py").read_text() == "mine"
    assert invoke(".").exit_code == invoke(".").exit_code == 0, "an older report is"


def test_a_run_leaves_its_report_and_does_not_fail_without(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(f"from harness.documented_run.recipe import Recipe\nsmall = {small!r}\n")
    command = ["run", "--recipe", "mine.py:small", "--updates", "1", "--quiet", "--output"]
    assert CliRunner().invoke(main, [*command, "out"]).exit_code == 0
    assert "small, plain loop, seed 42" in Path("out", FILE_NAME).read_text()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.report.html.page.write_page", full)
    result = CliRunner().invoke(main, [*command, "other"])
    assert (result.exit_code, result.stderr) == (
        0,
        "harness: other/report.html could not be written (No space left on device)\n",
    )
    assert RunRecord.read(Path("other")).updates == 1
