"""The scoreboard: what is expected of scripts, what an answer is worth, and how tools are asked."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from harness.errors import CannotTry
from scripts import adapters, scoreboard
from scripts.expectations import Answer, Case, Manifest, judged
from scripts.scoreboard import HARNESS, MARKS, PREFLIGHT, Asker, Figures, cases_of
from tests.server import ROOT, server_of

LOOP = """\
import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr={lr})
rows = torch.randn(8, 3)
for _ in range(6):
    loss = mse_loss(model(rows).squeeze(1), rows.sum(1))
    loss.backward()
    optimizer.step()
    {clear}
"""
RIGHT = LOOP.format(lr=0.01, clear="optimizer.zero_grad()")
NOT_CLEARED = LOOP.format(lr=0.01, clear="pass")
TOO_SLOW = LOOP.format(lr=1e-5, clear="optimizer.zero_grad()")

PAIR = {
    "id": "not_cleared",
    "bug": "bug.py",
    "fixed": "right.py",
    "exact": ["gradients::cleared-between-updates"],  # by a name that the check had once
    "near": [],
}
SLOW = {"id": "too_slow", "file": "slow.py", "kind": "bug", "hard": True}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A manifest of three scripts: a bug, its repair, and a bug that nothing sees."""
    for name, text in (("bug", NOT_CLEARED), ("right", RIGHT), ("slow", TOO_SLOW)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "manifest.json").write_text(json.dumps([PAIR, SLOW]))
    return tmp_path


# Manifests


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"id": "a"}, "an entry has bug and fixed, or a file, or a command"),
        (PAIR | {"exact": [{"chek": "x"}]}, "0.pair.exact.0.chek: Extra inputs are not permitted"),
        (PAIR | {"near": ["("]}, "no regular expression"),
        ({key: value for key, value in PAIR.items() if key != "near"}, "0.pair.near: Field required"),
        (SLOW | {"kind": "wrong"}, "0.script.kind: Input should be 'bug' or 'clean'"),
    ],
)
def test_a_bad_manifest_is_one_clear_error(tmp_path: Path, entry: dict[str, Any], says: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps([entry]))
    with pytest.raises(CannotTry) as error:
        Manifest.read(tmp_path)
    assert says in str(error.value)
    assert str(tmp_path / "manifest.json") in str(error.value)


def test_ids_are_known_and_there_once_and_scripts_are_there(folder: Path) -> None:
    assert [case.name for _, case in cases_of(folder, folder, ["not_cleared"])] == ["not_cleared", "fixed/not_cleared"]
    with pytest.raises(CannotTry, match="did you mean too_slow"):
        cases_of(folder, folder, ["to_slow"])
    (folder / "slow.py").unlink()
    with pytest.raises(CannotTry, match=r"too_slow: there is no .*slow\.py"):
        cases_of(folder, folder, [])
    (folder / "manifest.json").write_text(json.dumps([SLOW, SLOW]))
    with pytest.raises(CannotTry, match="too_slow is there twice"):
        cases_of(folder, folder, [])
    done = CliRunner().invoke(scoreboard.main, [str(folder)])
    assert done.exit_code == 2
    assert "too_slow is there twice" in done.output


def test_the_folders_of_a_folder_are_judged_apart(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        shutil.copytree(folder, tmp_path / "all" / name, ignore=shutil.ignore_patterns("all"))
    found = cases_of(tmp_path / "all", tmp_path / "all", ["too_slow"])
    assert [(title, case.name) for title, case in found] == [("one", "too_slow"), ("other", "too_slow")]


# What an answer is worth


def found(check: str, severity: str = "error", **more: Any) -> dict[str, Any]:
    return {"check": check, "severity": severity, "message": "the gradients add up", **more}


def cases(entry: dict[str, Any]) -> list[Case]:
    return [case for each in Manifest.model_validate([entry]).root for case in each.cases(Path())]


NAMES = {"gradients::not-cleared": {"gradients::cleared-between-updates"}}


@pytest.mark.parametrize(
    ("exact", "finding", "verdict"),
    [
        ("gradients::cleared-between-updates", found("gradients::not-cleared"), "exact"),
        ("gradients::cleared-between-updates", found("gradients::not-cleared", "warning"), "missed"),
        ("gradients::cleared-between-updates", found("other"), "missed"),
        ("x", found("near", "warning"), "pointed at"),
        ({"check": "grad.*", "says": "ADD up"}, found("gradients::not-cleared"), "exact"),
        ({"check": "grad.*", "says": "vanish"}, found("gradients::not-cleared"), "missed"),
        ({"line": [3, 5]}, found("any", where="a.py:4"), "exact"),
        ({"line": [3, 5]}, found("any", where="a.py:6"), "missed"),
    ],
)
def test_a_bug_is_named_by_an_error_that_fits_a_rule(exact: Any, finding: dict[str, Any], verdict: str) -> None:
    bug, _ = cases(PAIR | {"exact": [exact], "near": ["near"]})
    assert judged(bug, Answer([finding]), NAMES) == verdict


def test_for_other_tools_an_error_counts_whatever_it_says() -> None:
    bug, right = cases(PAIR)
    assert judged(bug, Answer([found("TP-1")]), None) == "flagged"
    assert judged(bug, Answer([found("TP-1", "warning")]), None) == "missed"
    assert judged(right, Answer([found("TP-1")]), None) == "false error"
    assert judged(right, Answer([found("TP-1", "warning")]), None) == "warned"
    assert judged(right, Answer(), None) == "quiet"
    assert judged(bug, Answer(not_asked="why"), None) == "could not be asked"
    assert judged(bug, Answer(broken="how"), None) == "broken"


def test_errors_that_a_command_may_give_are_true() -> None:
    entry = {"id": "a", "cwd": ".", "command": ["a.py"], "allowed": ["gradients::cleared-between-updates"]}
    true, false = found("gradients::not-cleared"), found("other")
    (must,), (may,) = cases(entry), cases(entry | {"may": True})
    for case, findings, verdict in (
        (must, [true], "exact"),
        (must, [true, false], "false error"),
        (must, [], "missed"),
        (may, [true], "warned"),
        (may, [false], "false error"),
        (may, [], "quiet"),
    ):
        assert judged(case, Answer(findings), NAMES) == verdict
    assert not cases(entry | {"tried": False})


# The harness


class Shared:
    """The server of the tests, which ends with them."""

    def __init__(self, config: pytest.Config) -> None:
        self.run = server_of(config).run

    def close(self) -> None: ...


@pytest.mark.slow
def test_the_board_of_three_scripts(
    folder: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scoreboard, "Server", lambda environment: Shared(pytestconfig))
    monkeypatch.setitem(scoreboard.MODULES, "guardtower", "no_such_module")
    written, table = tmp_path / "board.json", tmp_path / "page.md"
    table.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")
    command = [str(folder), "--tool", HARNESS, "--tool", "guardtower", "--json", str(written), "--markdown", str(table)]
    done = CliRunner().invoke(scoreboard.main, command)
    assert done.exit_code == 0, done.output
    board = json.loads(written.read_text())
    verdicts = {each["name"]: each["verdict"] for each in board["outcomes"]}
    assert verdicts == {"not_cleared": "exact", "fixed/not_cleared": "quiet", "too_slow": "missed"}
    assert board["absent"] == ["guardtower"]
    assert "guardtower is not installed" in done.output
    every, unmarked = board["figures"].values()
    assert (every[0]["bugs"], every[0]["exact"], every[0]["missed"]) == (2, 1, 1)
    assert (unmarked[0]["bugs"], unmarked[0]["exact"], unmarked[0]["missed"]) == (1, 1, 0)
    assert table.read_text().startswith(f"before\n{MARKS[0]}\n**{folder.name}**\n")
    assert table.read_text().endswith(f"{MARKS[1]}\nafter\n")
    assert f"| {HARNESS} | 2 | 1 | 0 | 1 | 1 | 1 | 0 | 0 | 0 | 0 |" in table.read_text()


@pytest.mark.slow
def test_a_script_that_crashes_or_goes_on_is_broken(folder: Path, pytestconfig: pytest.Config) -> None:
    (folder / "bug.py").write_text(RIGHT + "raise SystemExit('no')\n")
    (folder / "right.py").write_text(RIGHT + "import time\ntime.sleep(600)\n")
    (folder / "slow.py").write_text("print('no training')\n")
    answers = [
        Asker(folder, [server_of(pytestconfig)], limit).ask(HARNESS, case)
        for limit, (_, case) in zip((60, 4, 60), cases_of(folder, folder, []), strict=True)
    ]
    crashes, goes_on, trains_not = answers
    assert "sys.exit('no')" in str(crashes.broken)
    assert goes_on.broken == "it did not end within 4 s"
    assert "made no optimizer step" in str(trains_not.not_asked)


@pytest.mark.slow
def test_a_command_runs_in_a_copy_of_its_folder(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "train.py").write_text(
        f"import sys\nassert open(sys.argv[1]).read() == 'made'\nopen('left', 'w').close()\n{RIGHT}"
    )
    (tmp_path / "repository" / "make.py").write_text("import sys\nopen(sys.argv[1], 'w').write('made')\n")
    before, command = [["make.py", "{tmp}/file"]], ["train.py", "{tmp}/file"]
    entry = {"id": "a", "cwd": "repository", "command": command, "before": before, "allowed": []}
    (tmp_path / "manifest.json").write_text(json.dumps([entry]))
    ((_, case),) = cases_of(tmp_path, tmp_path, [])
    answer = Asker(tmp_path, [server_of(pytestconfig)], limit=60).ask(HARNESS, case)
    assert (answer.broken, answer.not_asked, list(answer.findings)) == (None, None, [])
    assert not (tmp_path / "repository" / "left").exists()


def test_figures_leave_out_what_was_not_answered() -> None:
    def outcome(verdict: Any, found: list[str]) -> scoreboard.Outcome:
        return scoreboard.Outcome("guardtower", "f", "a", "bug", False, verdict, found, None, 2.0)

    asked = [outcome("flagged", ["error x"]), outcome("missed", []), outcome("broken", []), outcome("broken", [])]
    figures = Figures.of("guardtower", [*asked, outcome("could not be asked", [])])
    assert figures.cells() == ("guardtower", "2", "-", "-", "1", "1", "0", "0", "0", "1", "2", "2.0")


# Other tools


@pytest.fixture
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an adapter changes of its process is as it was."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", sys.path[:])


def asked(tool: str, folder: Path, text: str) -> dict[str, Any]:
    """What the adapter reports of a script."""
    script, report = folder / "script.py", folder / "report.json"
    script.write_text(text)
    done = CliRunner().invoke(adapters.main, ["--tool", tool, "--json", str(report), str(script)])
    assert done.exit_code == 0, done.output + repr(done.exception)
    said: dict[str, Any] = json.loads(report.read_text())
    return said


@pytest.mark.usefixtures("no_traces")
@pytest.mark.parametrize("backward", ["loss.backward()", "(loss / 4).backward()", "(2.0 * loss * 8).backward()"])
def test_guardtower_gets_the_closure_of_the_first_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backward: str
) -> None:
    def audit(model: Any, step: Any, *, optimizer: Any, inputs: Any) -> Any:
        assert optimizer.param_groups[0]["lr"] == 0.01
        assert [tuple(each.shape) for each in inputs] == [(8, 3)]
        step().backward()
        named = SimpleNamespace(check="named", message=f"{model.weight.grad.shape}")
        return SimpleNamespace(errors=[named], warnings=[])

    monkeypatch.setitem(sys.modules, "guardtower", SimpleNamespace(audit=audit))
    said = asked("guardtower", tmp_path, RIGHT.replace("loss.backward()", backward))
    assert said["findings"] == [{"check": "named", "severity": "error", "message": "torch.Size([1, 3])"}]


@pytest.mark.usefixtures("no_traces")
def test_torchtest2_gets_model_inputs_targets_and_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check_model(model: Any, inputs: Any, targets: Any, *, loss_fn: Any, optimizer: Any) -> Any:
        assert loss_fn(model(*inputs), targets).requires_grad
        return SimpleNamespace(failures=[], warnings=[SimpleNamespace(name="loss", message="m")])

    monkeypatch.setitem(sys.modules, "torchtest2", SimpleNamespace(check_model=check_model))
    said = asked("torchtest2", tmp_path, RIGHT)
    assert said["findings"] == [{"check": "loss", "severity": "warning", "message": "m"}]


@pytest.mark.usefixtures("no_traces")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("loss.backward()", "(loss + model.weight.norm()).backward()", "not the value of one loss function"),
        ("model(rows)", "(model(rows) + model(-rows))", "2 calls of the optimizer's model"),
        ("model(rows).", "model(rows).tanh().", "computed from the model's output"),
        ("    optimizer.step()\n", "", "made no update"),
    ],
)
def test_a_loss_that_cannot_be_made_again_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, why: str
) -> None:
    monkeypatch.setitem(sys.modules, "guardtower", SimpleNamespace())
    said = asked("guardtower", tmp_path, RIGHT.replace(old, new))
    assert said["findings"] is None
    assert why in said["not_asked"]


@pytest.mark.usefixtures("no_traces")
def test_a_tool_that_fails_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_DEBUG", raising=False)
    monkeypatch.setitem(sys.modules, "guardtower", SimpleNamespace())
    assert "audit" in asked("guardtower", tmp_path, RIGHT)["broken"]


@pytest.mark.usefixtures("no_traces")
def test_torch_audit_is_patched_in_once_and_asked_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def autopatch(model: Any, *, optimizer: Any, every_n_steps: int) -> Any:
        calls.append(every_n_steps)
        findings = [
            SimpleNamespace(rule_id=rule, severity=SimpleNamespace(value=value), message="m")
            for rule, value in (("TA1", "FATAL"), ("TA2", "WARN"), ("TA3", "INFO"), ("TA1", "FATAL"))
        ]
        return SimpleNamespace(finish=lambda: SimpleNamespace(findings=findings))

    monkeypatch.setitem(sys.modules, "torch_audit", SimpleNamespace(autopatch=autopatch))
    said = asked("torch-audit", tmp_path, RIGHT)
    assert [(each["check"], each["severity"]) for each in said["findings"]] == [("TA1", "error"), ("TA2", "warning")]
    assert calls == [1]


DOCTOR = """\
import json, pathlib, sys
assert sys.argv[1] == "doctor" and sys.argv[3] == "--json"
lines = [json.loads(line) for line in next(pathlib.Path(sys.argv[2]).iterdir()).read_text().splitlines()]
assert all(set(line) == {"step", "lr", "grad_norm", "loss"} for line in lines)
found = {"id": "TP-1", "level": "FAIL", "message": f"{len(lines)} lines", "evidence": "e"}
print(json.dumps({"error": None, "reports": [{"findings": [found, found | {"level": "PASS"}]}]}))
"""


@pytest.mark.usefixtures("no_traces")
def test_trainproof_gets_a_log_of_every_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trainproof.py").write_text(DOCTOR)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "trainproof", SimpleNamespace())
    said = asked("trainproof", tmp_path, RIGHT)
    assert said["findings"] == [{"check": "TP-1", "severity": "error", "message": "6 lines e"}]


PREFLIGHTS = {
    "found": 'print(json.dumps({"failures": [], "diagnostics": [{"code": "TG1", "severity": "error"}]}))',
    "no answer": "sys.exit('cannot')",
    "unread": 'print(json.dumps({"failures": [{"error": "no Python"}], "diagnostics": []}))',
}


@pytest.mark.parametrize("case", PREFLIGHTS)
def test_torch_preflight_reads_the_script(folder: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    text = f"import json, sys\nassert sys.argv[1] == 'check' and sys.argv[3:] == ['-f', 'json']\n{PREFLIGHTS[case]}\n"
    (folder / "torch_preflight.py").write_text(text)
    monkeypatch.setitem(scoreboard.OFFLINE, "PYTHONPATH", f"{folder}:{ROOT}")
    answer = Asker(folder, [], limit=60).ask(PREFLIGHT, cases_of(folder, folder, [])[0][1])
    assert [each["check"] for each in answer.errors] == (["TG1"] if case == "found" else [])
    assert answer.broken == {"found": None, "no answer": "cannot", "unread": "no Python"}[case]


@pytest.mark.usefixtures("no_traces")
@pytest.mark.parametrize("tool", adapters.TOOLS)
def test_the_tool_itself_answers(tmp_path: Path, tool: str) -> None:
    """Where it is installed; a loop of six updates is long enough for all of them."""
    pytest.importorskip(adapters.TOOLS[tool].module, reason=f"{tool} is not installed")
    said = asked(tool, tmp_path, RIGHT)
    assert (said["not_asked"], said["broken"]) == (None, None)


def test_torch_preflight_itself_answers(folder: Path) -> None:
    pytest.importorskip("torch_preflight", reason="torch-preflight is not installed")
    answer = Asker(folder, [], limit=60).ask(PREFLIGHT, cases_of(folder, folder, [])[0][1])
    assert (answer.broken, answer.not_asked) == (None, None)
