"""A finding that may follow from another one is shown below it, and counts; nothing that was found is hidden."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from harness import catalogue
from harness.findings import Finding, Severity, errors_of, lines_apart
from harness.report import annotations as github
from harness.report import log, sarif
from harness.report.check import outcome_lines, receipt_lines, summary_line
from harness.watch import reported
from harness.watch.script import CheckReport, NotThere
from tests.server import server_of

PAIRS = [(cause, effect) for cause, fault in catalogue.checks().items() for effect in fault.explains]
"""Each check, and each whose findings may follow from its."""

CAUSE, EFFECT = "optimizer::missing-parameters", "schedule::lr-zero"


def made(check: str, line: int = 3, severity: Severity = "error", update: int = 1) -> Finding:
    return Finding("this", "that", "Do it.", f"train.py:{line}", update, check, severity, "It is wrong.")


def told(findings: list[Finding], *ignored: str) -> list[tuple[str, str | None]]:
    return [(each.check, each.explained_by) for each in reported(findings, ignored)]


@pytest.mark.parametrize(("cause", "effect"), PAIRS, ids=[f"{cause} {effect}" for cause, effect in PAIRS])
def test_what_follows_is_found_with_its_cause_and_without(cause: str, effect: str) -> None:
    both = [made(effect), made(cause, update=2)]
    assert told(both) == [(cause, None), (effect, cause)]
    assert told(both, cause) == [(effect, None)], "what is ignored explains nothing"
    assert told(both, effect) == [(cause, None)]
    assert told(both[:1]) == [(effect, None)], "nor does what is not selected"


@pytest.mark.parametrize("kind", [catalogue.checks, catalogue.losses, catalogue.causes])
def test_what_a_fault_explains_are_other_faults_by_the_ids_that_they_have_now(kind: object) -> None:
    known = kind()  # type: ignore[operator]
    for name, fault in known.items():
        assert set(fault.explains) <= set(known) - {name}, name
        assert len(set(fault.explains)) == len(fault.explains), name


def test_a_former_id_explains_nothing() -> None:
    """Rates that decay too fast once were part of lr-zero."""
    assert "schedule::decays-too-fast" in catalogue.resolve([EFFECT])
    both = [made(CAUSE), made("schedule::decays-too-fast")]
    assert told(both) == [(CAUSE, None), ("schedule::decays-too-fast", None)]


def test_what_a_comment_ignores_explains_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(f"model\noptimizer  # harness: ignore[{CAUSE}]\nscheduler\n")
    assert told([made(CAUSE, 2), made(EFFECT)]) == [(EFFECT, None)]
    assert told([made(CAUSE, 2), made(CAUSE, 1), made(EFFECT)]) == [(CAUSE, None), (EFFECT, CAUSE)]


def test_what_follows_from_what_follows_has_the_same_root() -> None:
    chain = ["optimizer::holds-another-model", CAUSE, EFFECT]
    root = chain[0]
    assert told([made(each) for each in reversed(chain)]) == [(root, None), (EFFECT, root), (CAUSE, root)]


def test_of_two_that_follow_from_each_other_one_is_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue.checks()[EFFECT], "explains", (CAUSE,))
    assert told([made(EFFECT), made(CAUSE, update=2)]) == [(EFFECT, None), (CAUSE, EFFECT)]


def test_errors_come_first_also_where_a_warning_explains_them() -> None:
    warning, explained = "inputs::rows-ignored", "loss::constant"
    found = [made("memory::graphs-kept", severity="warning"), made(warning, severity="warning", update=5)]
    found += [made(explained), made("gradients::not-cleared", update=9)]
    assert told(found) == [
        *(("gradients::not-cleared", None), (warning, None), (explained, warning), ("memory::graphs-kept", None)),
    ]
    assert [(each.check, each.explained_by) for each in errors_of(reported(found, ()))] == [
        *(("gradients::not-cleared", None), (explained, None)),
    ]


@pytest.fixture
def report() -> CheckReport:
    report = CheckReport("train.py", updates=8, seconds={"before the first batch": 1.0, "in all": 2.0})
    report.findings = reported([made(CAUSE, 2), made(CAUSE, 4), made(EFFECT)], ())
    report.did_not_apply = [NotThere("no clipping", ["gradients::clips-nothing"])]
    return report


def test_the_terminal_has_it_in_one_line_below_its_cause(report: CheckReport) -> None:
    lines = list(outcome_lines(report))
    first, second = (number for number, line in enumerate(lines) if line.startswith(f"  error: {CAUSE}"))
    assert f"    also      error: {EFFECT} at train.py:3; may follow from it" in lines[first:second]
    assert sum(EFFECT in line for line in lines) == 1
    assert summary_line(report).startswith("train.py: 3 errors in 8 updates")
    assert report.failed


def test_it_counts_by_its_own_severity() -> None:
    report = CheckReport("train.py")
    report.findings = reported([made("inputs::rows-ignored", severity="warning"), made("loss::constant")], ())
    assert [each.severity for each in report.findings] == ["warning", "error"]
    assert report.failed


def test_every_other_output_has_it_too(report: CheckReport) -> None:
    follows = f"  - error `{EFFECT}` train.py:3: that (may follow from `{CAUSE}`)"
    assert follows in list(receipt_lines(report, {}))
    (entry,) = (each for each in log.of_check(report).results if each.rule.id == EFFECT)
    assert entry.details.endswith(f"\nIt may follow from {CAUSE}.")
    assert sum(f"may follow from {CAUSE}" in line for line in github.of_log(log.of_check(report))) == 1
    (result,) = (each for each in sarif.of_log(log.of_check(report))["runs"][0]["results"] if each["ruleId"] == EFFECT)
    assert result["message"]["text"].endswith(f"It may follow from {CAUSE}.")
    assert [each["explained_by"] for each in json.loads(json.dumps(report.as_dict()))["findings"]] == [
        None,
        CAUSE,
        None,
    ]
    assert [line == "" for line in lines_apart(report.findings)].count(True) == 2


HEAD_AND_SCHEDULE = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(1)
    inputs = torch.randn(240, 4)
    rows = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=12, shuffle=True)
    model = nn.ModuleDict({"body": nn.Linear(4, 8), "head": nn.Linear(8, 3)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model["head"] = nn.Linear(8, 2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.6)
    for epoch in range(5):
        for batch, labels in rows:
            loss = nn.functional.cross_entropy(model["head"](model["body"](batch).tanh()), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
"""
"""The optimizer is made before the head is replaced; and a rate meant for epochs decays with each batch."""

SAVED_TOO_EARLY = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(1)
    inputs = torch.randn(120, 4)
    rows = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=12, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.save(model.state_dict(), "final.pt")
    kept = model.state_dict()
    for epoch in range(3):
        for batch, labels in rows:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.load_state_dict(kept)
"""
"""The state that is kept follows the model; and the file has the model before its first update."""


@pytest.mark.parametrize(
    ("text", "ignored", "found"),
    [
        (HEAD_AND_SCHEDULE, "", ["optimizer::holds-another-model", "schedule::decays-too-fast"]),
        (HEAD_AND_SCHEDULE, "optimizer", ["schedule::decays-too-fast"]),
        (SAVED_TOO_EARLY, "", ["saved::before-training", "weights::state-kept-without-copy"]),
    ],
)
def test_of_two_bugs_in_a_script_neither_hides_the_other(
    text: str, ignored: str, found: list[str], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(text))
    options = ["--ignore", ignored] if ignored else []
    done = server_of(pytestconfig).run(
        tmp_path, "check", "--json", "found.json", *options, "train.py", together="watched"
    )
    written = json.loads((tmp_path / "found.json").read_text())
    assert sorted({each["check"] for each in written["findings"] if each["explained_by"] is None}) == found
    assert done.status == 1, done.stderr
