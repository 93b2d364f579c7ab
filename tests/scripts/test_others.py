"""Sets of programs: what a manifest may say, what an answer is worth, how tools are asked, what is written of it."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from harness.errors import CannotTry
from scripts import adapters, scoreboard
from scripts.adapters import finding
from scripts.expectations import Answer, Case, Commands, Manifest, Program, cases_in, judged
from scripts.others import __main__ as others
from scripts.others import page, pysiassist, sets
from scripts.scoreboard import HARNESS, PLAIN, Asker, Figures, Outcome, cases_of
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

SET = """\
format = 1

[set]
name = "three"
version = "1"
licence = "CC0"
about = "Three programs."
expected = 2026-11-28
seen = "nothing"
"""
PAIR = """
[[program]]
id = "not_cleared"
bug = "bug.py"
right = "right.py"
wrong = "Gradients of earlier updates are still there."
says = ["gradients::cleared-between-updates"]  # by a name that the check had once
"""
SLOW = """
[[program]]
id = "too_slow"
bug = "slow.py"
wrong = "The learning rate is too small to see anything."
says = ["learning rate"]
decidable = false
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of three programs: a bug, its repair, and a bug that nothing sees."""
    place = tmp_path / "three"
    place.mkdir()
    for name, text in (("bug", NOT_CLEARED), ("right", RIGHT), ("slow", TOO_SLOW)):
        (place / f"{name}.py").write_text(text)
    (place / "manifest.toml").write_text(SET + PAIR + SLOW)
    return place


# Manifests


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SET + '[[program]]\nid = "a"\n', "a: it names neither a version with a bug (bug) nor one without (right)"),
        (SET + PAIR.replace("wrong =", "note ="), "not_cleared: wrong is missing: one sentence"),
        (SET + PAIR.replace("bug =", "was ="), "not_cleared: wrong is about a version with a bug, and there is none"),
        (SET + PAIR.replace("says =", "sayz ="), "not_cleared: says, what a right message says, belongs to"),
        (SET + PAIR + '[[program.edit]]\nold = "a"\nnew = "b"\n', "not_cleared: edit makes the version"),
        (
            SET + PAIR.replace('["gra', '["(gra'),
            "not_cleared.says.0: '(gradients::cleared-between-updates' is no regular",
        ),
        (SET + PAIR + PAIR, "the id not_cleared is there twice"),
        (SET.replace("format = 1", "format = 2") + PAIR, "format: Input should be 1"),
        (SET.replace("licence", "license") + PAIR, "set.lic"),
        (SET + "[[program]\n", "is no TOML"),
    ],
)
def test_a_bad_manifest_is_one_clear_error(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "manifest.toml"
    file.write_text(text)
    with pytest.raises(CannotTry) as error:
        Manifest.read(file)
    assert says in str(error.value)
    assert str(file) in str(error.value)


def test_a_manifest_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"there is no manifest .*docs/sets\.md"):
        cases_in(tmp_path)


def test_ids_are_known_and_scripts_are_there(folder: Path) -> None:
    assert [case.name for _, case in cases_of(folder, folder, ["not_cleared"])] == ["not_cleared", "right/not_cleared"]
    with pytest.raises(CannotTry, match="did you mean too_slow"):
        cases_of(folder, folder, ["to_slow"])
    (folder / "slow.py").unlink()
    with pytest.raises(CannotTry, match=r"too_slow: there is no .*slow\.py"):
        cases_of(folder, folder, [])


def test_the_folders_of_a_folder_are_judged_apart(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        shutil.copytree(folder, tmp_path / "all" / name)
    found = cases_of(tmp_path / "all", tmp_path / "all", ["too_slow"])
    assert [(title, case.name) for title, case in found] == [("one", "too_slow"), ("other", "too_slow")]


def test_an_edit_of_the_right_version_is_a_program_with_the_bug(folder: Path) -> None:
    edit = 'edit = [{ old = "optimizer.zero_grad()", new = "pass" }]'
    (folder / "manifest.toml").write_text(SET + PAIR.replace('bug = "bug.py"', edit))
    cases = [case for _, case in cases_of(folder, folder, [])]
    assert [(case.name, case.kind, bool(case.edit)) for case in cases] == [
        ("not_cleared", "bug", True),
        ("right/not_cleared", "right", False),
    ]
    assert cases[0].edited() == NOT_CLEARED
    (folder / "right.py").write_text("# no such passage\n")
    with pytest.raises(CannotTry, match=r"has the passage 'optimizer\.zero_grad\(\)' 0 times"):
        cases_of(folder, folder, [])


@pytest.mark.slow
def test_an_edited_program_is_run(folder: Path, pytestconfig: pytest.Config) -> None:
    edit = 'edit = [{ old = "optimizer.zero_grad()", new = "pass" }]'
    (folder / "manifest.toml").write_text(SET + PAIR.replace('bug = "bug.py"', edit))
    ((_, case), _) = cases_of(folder, folder, [])
    answer = Asker(folder, server_of(pytestconfig), 60).ask(HARNESS, case)
    assert [each["check"] for each in answer.errors] == ["gradients::not-cleared"]
    assert (folder / "right.py").read_text() == RIGHT


def test_programs_of_other_questions_are_not_checked() -> None:
    program = Program(id="a", bug=Path("a.py"), wrong="It loses rows.", says=["rows"], task="resume")
    assert list(program.cases(Path())) == []


# What an answer is worth


def found(check: str, severity: str = "error", **more: Any) -> dict[str, Any]:
    return {"check": check, "severity": severity, "message": "the gradients add up", **more}


def pair(says: Sequence[str], near: Sequence[str] = ()) -> list[Case]:
    program = Program(id="a", bug=Path("b.py"), right=Path("r.py"), wrong="w", says=list(says), near=list(near))
    return list(program.cases(Path()))


NAMES = {"gradients::not-cleared": {"gradients::cleared-between-updates"}}


@pytest.mark.parametrize(
    ("says", "finding", "verdict"),
    [
        ("gradients::cleared-between-updates", found("gradients::not-cleared"), "exact"),
        ("gradients::cleared-between-updates", found("gradients::not-cleared", "warning"), "pointed at"),
        ("gradients::cleared-between-updates", found("other"), "missed"),
        ("x", found("near", "warning"), "pointed at"),
        ("^grad.*ADD up", found("gradients::not-cleared"), "exact"),
        ("^grad.*vanish", found("gradients::not-cleared"), "missed"),
        ("(^| )gradients::not-cleared[ :]", found("gradients::not-cleared"), "exact"),
        ("(^| )gradients::not[ :]", found("gradients::not-cleared"), "missed"),
    ],
)
def test_a_bug_is_named_by_an_error_that_fits_a_rule(says: str, finding: dict[str, Any], verdict: str) -> None:
    bug, _ = pair([says], ["near"])
    assert judged(bug, Answer([finding]), NAMES) == verdict


def test_for_other_tools_an_error_counts_whatever_it_says() -> None:
    bug, right = pair(["x"])
    assert judged(bug, Answer([found("TP-1")]), None) == "flagged"
    assert judged(bug, Answer([found("TP-1", "warning")]), None) == "missed"
    assert judged(right, Answer([found("TP-1")]), None) == "false error"
    assert judged(right, Answer([found("TP-1", "warning")]), None) == "warned"
    assert judged(right, Answer(), None) == "quiet"
    assert judged(bug, Answer(not_asked="why"), None) == "could not be asked"
    assert judged(bug, Answer(broken="how"), None) == "broken"


def commands(entry: dict[str, Any]) -> list[Case]:
    return [case for each in Commands.model_validate([entry]).root for case in each.cases()]


def test_errors_that_a_command_may_give_are_true() -> None:
    entry = {"id": "a", "cwd": ".", "command": ["a.py"], "allowed": ["gradients::cleared-between-updates"]}
    true, false = found("gradients::not-cleared"), found("other")
    (must,), (may,) = commands(entry), commands(entry | {"may": True})
    for case, findings, verdict in (
        (must, [true], "exact"),
        (must, [true, false], "false error"),
        (must, [], "missed"),
        (may, [true], "warned"),
        (may, [false], "false error"),
        (may, [], "quiet"),
    ):
        assert judged(case, Answer(findings), NAMES) == verdict
    assert not commands(entry | {"tried": False})


# The command


class Shared:
    """The server of the tests, which ends with them."""

    def __init__(self, config: pytest.Config) -> None:
        self.run = server_of(config).run

    def close(self) -> None: ...


@pytest.fixture
def one_server(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "Server", lambda environment, python: Shared(pytestconfig))


@pytest.mark.slow
@pytest.mark.usefixtures("one_server")
def test_what_a_set_comes_to(folder: Path, tmp_path: Path) -> None:
    """Each program runs by itself first; one that ends with an error is counted for no tool."""
    (folder / "broken.py").write_text("raise SystemExit('no data')\n")
    program = '[[program]]\nid = "broken"\nbug = "broken.py"\nwrong = "It ends."\nsays = ["x"]\n'
    (folder / "manifest.toml").write_text(SET + PAIR + SLOW + program)
    written = tmp_path / "found.json"
    done = CliRunner().invoke(others.main, [str(folder), "--tool", HARNESS, "--json", str(written)])
    assert done.exit_code == 0, done.output
    result = json.loads(written.read_text())
    verdicts = {each["name"]: each["verdict"] for each in result["outcomes"] if each["tool"] == HARNESS}
    assert verdicts == {"not_cleared": "exact", "right/not_cleared": "quiet", "too_slow": "missed"}
    (figures,) = scoreboard.by_tool(page.read(result))
    assert (figures.bugs, figures.named, figures.flagged, figures.right, figures.false_errors) == (1, 1, 1, 1, 0)
    assert figures.undecidable == (0, 1)
    assert "does not run by itself: broken: it ended itself with 'no data'" in done.output


def test_what_cannot_be_tried_is_one_clear_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(others.main, ["nowhere"])
    assert done.exit_code == 2
    assert "nowhere is neither a folder nor a known set; known are pulseml" in done.output
    done = CliRunner().invoke(others.main, ["pulseml", "--from", str(tmp_path)])
    assert "is no copy of https://github.com/codeyash09/PulseML at commit ffa8d39" in done.output


def test_the_known_sets_are_listed_with_their_licences() -> None:
    done = CliRunner().invoke(others.main, [])
    assert [line.partition(":")[0] for line in done.output.splitlines() if line[0] != " "] == list(sets.SETS)
    assert "(MIT)" in done.output


def test_programs_other_than_those_of_the_expectations_are_refused(tmp_path: Path) -> None:
    for program in sets.expectations("emse").program:
        (tmp_path / "copy" / "Bugs" / program.id).mkdir(parents=True)
        (tmp_path / "copy" / "Bugs" / program.id / "main.py").write_text("print()\n")
    with pytest.raises(CannotTry, match=r"expected the digest e469bceb3127e86c, found .*; check out 11b01d6"):
        sets.laid_out("emse", tmp_path / "copy", tmp_path)


def test_a_set_out_of_reach_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_git(command: Sequence[str], **_: Any) -> SimpleNamespace:
        return SimpleNamespace(returncode=128, stderr="fatal: could not resolve host")

    monkeypatch.setattr(sets.subprocess, "run", no_git)  # type: ignore[attr-defined]
    with pytest.raises(CannotTry, match=r"needs a copy of .* could not resolve host\); name a folder .* with --from"):
        sets.bring("traincheck", tmp_path)


# Snippets in a table

SNIPPETS = {
    "p002": "for rows, numbers in batches:\n\tmodel.cuda()\n\tprint 'step'\n\tseen += loss.data[0]\nrun()\n",
    "n002": "def run(model):\n    model.to('cuda:0')\n  model.eval()\nrun()\n",
}
SNIPPETS_SET = (
    SET
    + """
[[program]]
id = "p002"
bug = "p002.py"
wrong = "It only looks."
says = ["x"]
prelude = "batches = []"
loop = "for epoch in range(2):"

[[program]]
id = "n002"
right = "n002.py"
prelude = "import torch"
at = "^def "
there = "net = torch.nn.Linear(1, 1)"
after = "run(net)"
"""
)


def write_table(file: Path, sheets: dict[str, str]) -> None:
    """A table as office programs write them: each sheet has one snippet, in C2."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    listed = "".join(f'<sheet name="{name}" r:id="r{at}"/>' for at, name in enumerate(sheets))
    links = "".join(f'<Relationship Id="r{at}" Target="worksheets/sheet{at}.xml"/>' for at in range(len(sheets)))
    shared = "".join(f'<si><t xml:space="preserve">{text}</t></si>' for text in sheets.values())
    file.parent.mkdir(parents=True)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", f'<w xmlns="{main}" xmlns:r="{office}">{listed}</w>')
        archive.writestr("xl/_rels/workbook.xml.rels", f"<links>{links}</links>")
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{main}">{shared}</sst>')
        for at in range(len(sheets)):
            cells = f'<c r="A2"><v>3</v></c><c r="C2" t="s"><v>{at}</v></c>'
            archive.writestr(f"xl/worksheets/sheet{at}.xml", f'<s xmlns="{main}"><row r="2">{cells}</row></s>')


def test_a_snippet_gets_what_it_leaves_out(tmp_path: Path) -> None:
    """And is as it was otherwise, apart from its devices, Python 2, its margins and a call that lacks arguments."""
    (tmp_path / "manifest.toml").write_text(SNIPPETS_SET)
    sheets = dict(zip(pysiassist.SHEETS.values(), SNIPPETS.values(), strict=True))
    write_table(tmp_path / pysiassist.TABLE, sheets)
    pysiassist.pysiassist(tmp_path, tmp_path, Manifest.read(tmp_path / "manifest.toml"))
    bug, right = ((tmp_path / f"{each}.py").read_text() for each in SNIPPETS)
    common = pysiassist.COMMON.read_text()
    assert bug == common + (
        "\n\nbatches = []\n\nfor epoch in range(2):\n    for rows, numbers in batches:\n"
        "        model\n        print('step')\n        seen += loss.item()\n    run()\n"
    ).removeprefix("\n")
    assert right.removeprefix(common) == (
        "\nimport torch\n\nnet = torch.nn.Linear(1, 1)\ndef run(model):\n    model.to('cpu')\nmodel.eval()\n"
        "\nrun(net)\n"
    )


def test_a_table_without_the_sheet_is_one_clear_error(tmp_path: Path) -> None:
    write_table(tmp_path / "copy" / pysiassist.TABLE, {"Positive Sample": "", "More": ""})
    with pytest.raises(CannotTry, match=r"testing_codes_set\.xlsx has no sheet 'Negative Sample'; it has More, Pos"):
        sets.laid_out("pysiassist", tmp_path / "copy", tmp_path)
    (tmp_path / "copy" / pysiassist.TABLE).write_text("no table")
    with pytest.raises(CannotTry, match=r"is no table of the kind \.xlsx"):
        sets.laid_out("pysiassist", tmp_path / "copy", tmp_path)


# Running


@pytest.mark.slow
def test_a_script_that_crashes_or_goes_on_is_broken(folder: Path, pytestconfig: pytest.Config) -> None:
    (folder / "bug.py").write_text(RIGHT + "raise SystemExit('no')\n")
    (folder / "right.py").write_text(RIGHT + "import time\ntime.sleep(600)\n")
    (folder / "slow.py").write_text("print('no training')\n")
    answers = [
        Asker(folder, server_of(pytestconfig), limit).ask(HARNESS, case)
        for limit, (_, case) in zip((60, 4, 60), cases_of(folder, folder, []), strict=True)
    ]
    crashes, goes_on, trains_not = answers
    assert "sys.exit('no')" in str(crashes.broken)
    assert goes_on.broken == "it did not end within 4 s"
    assert "made no optimizer step" in str(trains_not.not_asked)


@pytest.mark.slow
def test_what_lies_beside_the_programs_is_in_their_folder(folder: Path, pytestconfig: pytest.Config) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "rows").write_text("12")
    (folder / "bug.py").write_text("assert open('data/rows').read() == '12'\n" + NOT_CLEARED)
    ((_, case), _) = cases_of(folder, folder, ["not_cleared"])
    answer = Asker(folder, server_of(pytestconfig), 60, beside=("data",)).ask(HARNESS, case)
    assert (answer.broken, len(answer.errors)) == (None, 1)


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
    for tool in (HARNESS, PLAIN):
        answer = Asker(tmp_path, server_of(pytestconfig), limit=60).ask(tool, case)
        assert (answer.broken, answer.not_asked, list(answer.findings)) == (None, None, [])
    assert not (tmp_path / "repository" / "left").exists()


def outcome(verdict: Any, found: list[str], *, kind: Any = "bug", tool: str = "guardtower") -> Outcome:
    return Outcome(tool, "f", "a", kind, False, verdict, found, None, 2.0)


@pytest.mark.slow
def test_a_module_runs_by_itself(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "repository" / "package").mkdir(parents=True)
    text = "import sys\nraise SystemExit(f'{__name__} with {sys.argv[1:]}')\n"
    (tmp_path / "repository" / "package" / "ends.py").write_text(text)
    case = Case("a", "right", ("-m", "package.ends", "1"), cwd=Path("repository"))
    answer = Asker(tmp_path, server_of(pytestconfig), limit=60).ask(PLAIN, case)
    assert answer.broken == """it ended itself with "__main__ with ['1']\""""


def test_a_folder_beside_that_is_not_there_is_one_clear_error(folder: Path) -> None:
    (folder / "manifest.toml").write_text(SET + 'beside = ["data"]\n' + PAIR)
    with pytest.raises(CannotTry, match=r"there is no folder .*data, which `beside` in .*manifest\.toml names"):
        others.beside_of(folder)


def test_figures_leave_out_what_was_not_answered() -> None:
    asked = [outcome("flagged", ["error x"]), outcome("missed", []), outcome("broken", []), outcome("broken", [])]
    figures = Figures.of("guardtower", [*asked, outcome("could not be asked", [])])
    assert page.cells(figures) == ("guardtower", "2", "-", "-", "1", "0", "0", "0", "3", "2.0")


def test_the_tables_of_the_page_and_of_the_readme_are_the_records() -> None:
    """``python -m scripts.others NAME --record`` writes both."""
    for file, lines in ((page.PAGE, page.page_lines), (page.README, page.summary_lines)):
        begin, end = page.MARKS
        text = file.read_text(encoding="utf-8")
        assert text[text.index(begin) + len(begin) + 1 : text.index(end)] == "\n".join(lines(page.records())) + "\n"


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


@pytest.mark.usefixtures("no_traces")
@pytest.mark.parametrize("case", PREFLIGHTS)
def test_torch_preflight_reads_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    options = "['-f', 'json', '-j', '1']"
    text = f"import json, sys\nassert sys.argv[1] == 'check' and sys.argv[3:] == {options}\n{PREFLIGHTS[case]}\n"
    (tmp_path / "torch_preflight.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.setitem(sys.modules, "torch_preflight", SimpleNamespace())
    said = asked("torch-preflight", tmp_path, "raise RuntimeError('it is not run')\n")
    assert said["findings"] == ([finding("TG1", "error", "")] if case == "found" else None)
    assert (said["broken"] or "").startswith({"found": "", "no answer": "JSON", "unread": "CannotTry: no Py"}[case])


@pytest.mark.usefixtures("no_traces")
def test_mldoct_reads_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lint_script(file: str) -> tuple[list[dict[str, Any]], None]:
        kinds = (("CRITICAL", "a"), ("WARNING", "b"), ("INFO", "c"))
        return [{"severity": severity, "type": name, "message": file[-3:]} for severity, name in kinds], None

    monkeypatch.setitem(sys.modules, "mldoctor", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mldoctor.linter", SimpleNamespace(lint_script=lint_script))
    said = asked("mldoct", tmp_path, "raise RuntimeError('it is not run')\n")
    assert said["findings"] == [finding("a", "error", ".py"), finding("b", "warning", ".py")]


@pytest.mark.usefixtures("no_traces")
@pytest.mark.parametrize("tool", adapters.TOOLS)
def test_the_tool_itself_answers(tmp_path: Path, tool: str) -> None:
    """Where it is installed; a loop of six updates is long enough for all of them."""
    pytest.importorskip(adapters.TOOLS[tool].module, reason=f"{tool} is not installed")
    said = asked(tool, tmp_path, RIGHT)
    assert (said["not_asked"], said["broken"]) == (None, None)
