"""``harness check --fix`` and ``--diff`` as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from harness.findings import Finding
from harness.repairs import prove
from harness.repairs.prove import _objection
from harness.repairs.repair import all_repairs
from harness.report.check import patch_lines
from harness.watch.script import CheckReport, NotLookedAt, Patch
from scripts.record_pages import REPAIRS, is_repaired, is_worse
from scripts.repairs import cases, key, repaired
from tests.checks.corpus import Case
from tests.server import Done, server_of

ROOT = Path(__file__).parents[2]

LOOP = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.arange(64) % 2), batch_size=8{shuffle})
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(2):
    for inputs, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step(){clear}
"""
RIGHT = LOOP.format(shuffle=", shuffle=True", clear="\n        optimizer.zero_grad()")
NOT_CLEARED = LOOP.format(shuffle=", shuffle=True", clear="")


class Check(Protocol):
    def __call__(self, *arguments: str, program: str = ...) -> tuple[Done, dict[str, Any]]: ...


@pytest.fixture
def check(tmp_path: Path, pytestconfig: pytest.Config) -> Check:
    """``harness check`` with these arguments, in a folder of its own; what it starts is forked."""

    def run(*arguments: str, program: str = "tests.repairs.forked") -> tuple[Done, dict[str, Any]]:
        words = ("check", "--json", "found.json", *arguments)
        done = server_of(pytestconfig).run(tmp_path, *words, program=program)
        file = tmp_path / "found.json"
        found = json.loads(file.read_text()) if file.exists() else {}
        return done, found

    return run


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_a_diff_is_a_patch_and_leaves_the_script_alone(check: Check, tmp_path: Path) -> None:
    path = write(tmp_path, NOT_CLEARED)
    done, found = check("--diff", "train.py")
    assert done.status == 1, done.stderr
    assert path.read_text() == NOT_CLEARED
    (patch,) = found["patches"]
    about = {"check": "gradients::not-cleared", "file": "train.py", "why": None, "gone_with": None}
    assert patch == {**about, "diff": done.stdout}
    assert "1 of 1 finding can be repaired" in done.stderr
    subprocess.run(["git", "apply", "-"], input=done.stdout.encode(), cwd=tmp_path, check=True)
    assert path.read_text() == RIGHT


def test_a_fix_is_written_with_the_line_ends_that_are_there(check: Check, tmp_path: Path) -> None:
    path = write(tmp_path, NOT_CLEARED.replace("\n", "\r\n"))
    path.chmod(0o750)
    done, found = check("--fix", "train.py")
    assert (done.status, done.stdout) == (0, "")
    assert "repaired: gradients::not-cleared in train.py" in done.stderr
    assert path.read_bytes() == RIGHT.replace("\n", "\r\n").encode()
    assert path.stat().st_mode & 0o777 == 0o750
    assert [each["check"] for each in found["findings"]] == ["gradients::not-cleared"]
    assert sorted(os.listdir(tmp_path)) == ["found.json", "train.py"]


@pytest.mark.slow
def test_a_folder_may_be_called_as_one_of_ours(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The patch is tried in a copy, which lies beside a ``tmp``."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    path = write(folder, NOT_CLEARED)
    done = server_of(pytestconfig).run(folder, "check", "--fix", "train.py", program="tests.repairs.forked")
    assert path.read_text() == RIGHT, done.stderr


def test_patches_are_proved_on_top_of_each_other(check: Check, tmp_path: Path) -> None:
    path = write(tmp_path, LOOP.format(shuffle="", clear=""))
    done, found = check("--fix", "--diff", "train.py")
    assert done.status == 0, done.stderr
    assert path.read_text() == RIGHT
    assert [each["check"] for each in found["patches"]] == ["gradients::not-cleared", "rows::same-order-each-epoch"]
    assert done.stdout.count("--- a/train.py") == 1, "one patch for a file"


def made(check: str, explained_by: str | None = None) -> Finding:
    return Finding("this", "that", "Do it.", "train.py:1", 1, check, explained_by=explained_by)


CAUSE, EFFECT = "gradients::not-cleared", "schedule::never-stepped"


@pytest.mark.parametrize(
    ("left", "patch", "status"),
    [
        ([], Patch(EFFECT, gone_with=CAUSE), []),
        ([made(EFFECT)], Patch(EFFECT, "train.py", "its own"), []),
        ([made(CAUSE), made(EFFECT, CAUSE)], Patch(EFFECT, why=f"it may follow from {CAUSE}: repair that first"), None),
    ],
    ids=["it is gone with the cause", "it stays without the cause", "the cause stays"],
)
def test_what_follows_is_repaired_after_its_cause(
    left: list[Finding], patch: Patch, status: list[str] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first edit that is tried leaves what is ``left``, the second nothing."""
    both = [made(CAUSE), made(EFFECT, CAUSE)]
    report = CheckReport("train.py", findings=both, held=[], seconds={"in all": 1.0})
    remaining, begun = [left, []], list[str]()

    class Bench:
        begun = 0

        def read(self, name: str) -> bytes:
            return b"begun"

        def tell(self, line: str) -> None: ...

        def begins(self, line: str) -> None:
            begun.append(line)

        def run(self, files: Any, seconds: float) -> CheckReport:
            found = remaining.pop(0) if CAUSE not in {each.check for each in left} else both
            held = [each for each in (CAUSE, EFFECT) if each not in {finding.check for finding in found}]
            return CheckReport("train.py", findings=found, held=held, seconds={"in all": 1.0})

    monkeypatch.setattr(prove, "candidates", lambda data, finding: [data + finding.check.encode()])
    monkeypatch.setattr(prove, "_overlap", lambda begun, before, edited: False)
    monkeypatch.setattr(prove, "_diff", lambda name, before, after: "its own")
    report.patches = prove.prove(Bench(), report, again=report).patches  # type: ignore[arg-type]
    assert report.patches[1] == patch
    assert begun[0] == f"edit 1 of 1 for {CAUSE}: about 1 s …"
    assert [each.check for each in report.left] == ([CAUSE, EFFECT] if status is None else status)
    said = "\n".join(patch_lines(report, written=True))
    assert (f"repaired: {EFFECT}, by the patch for {CAUSE}" in said) == (patch.gone_with is not None)


@pytest.mark.parametrize("held", [True, False])
def test_what_is_not_looked_at_any_more_is_not_repaired(held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the patch of the cause nothing is left that the other check looks at: that shows nothing."""
    report = CheckReport("train.py", findings=[made(CAUSE), made(EFFECT)], held=[], seconds={"in all": 1.0})
    after = CheckReport("train.py", findings=[], held=[CAUSE, EFFECT] if held else [CAUSE], seconds={"in all": 1.0})
    told: list[str] = []
    on: Any = SimpleNamespace(begun=0, read=lambda name: b"x", tell=told.append, begins=told.append)
    on.run = lambda files, seconds: after if files else report
    monkeypatch.setattr(prove, "candidates", lambda data, finding: [data + b"1", data + b"2"])
    monkeypatch.setattr(prove, "_overlap", lambda begun, before, edited: False)
    patches = prove.prove(on, report).patches
    assert [each.gone_with for each in patches] == [None, CAUSE if held else None]
    assert held or patches[1].why == f"the patch of {CAUSE} leaves nothing for it to judge"
    edits = "up to 4 more runs of about 1 s each"
    assert told[0] == f"running it again, which takes about 1 s, and once for each edit: {edits}"


@pytest.mark.parametrize(
    ("old", "new", "status", "why"),
    [
        ("lr=1e-2", "lr=1e-2, weight_decay=50", 1, "no automatic repair is known for it"),
        ("er.step()", "er.step()\n        model.bias.data -= 1e-4", 0, "it is a warning, and may be what you meant"),
    ],
    ids=["error", "warning"],
)
def test_what_gets_no_patch_is_said(check: Check, tmp_path: Path, old: str, new: str, status: int, why: str) -> None:
    path = write(tmp_path, RIGHT.replace(old, new))
    done, found = check("--fix", "train.py")
    assert done.status == status
    assert path.read_text() == RIGHT.replace(old, new)
    (patch,) = found["patches"]
    about = {"check": found["findings"][0]["check"], "file": None, "diff": None, "gone_with": None}
    assert patch == {**about, "why": why}
    assert f"  no patch: {patch['check']}: {why}\n" in done.stderr


def test_a_notebook_is_refused_before_it_is_run(check: Check, tmp_path: Path) -> None:
    write(tmp_path, "{}", "train.ipynb")
    done, _ = check("--diff", "train.ipynb")
    assert done.status == 2
    assert "cannot edit a notebook" in done.stderr


@pytest.mark.nightly
def test_a_module_beside_the_script_is_repaired(check: Check, tmp_path: Path) -> None:
    head, _, loop = NOT_CLEARED.partition("for epoch")
    body = textwrap.indent(f"for epoch{loop}", "    ")
    (tmp_path / "parts").mkdir()
    path = write(tmp_path, f"import torch\n\n\ndef fit(model, optimizer, loader):\n{body}", "parts/fit.py")
    write(tmp_path, f"{head}\nfrom parts.fit import fit\nfit(model, optimizer, loader)\n")
    done, found = check("--fix", "train.py", program="harness.cli")  # in a fork the module would be imported already
    assert done.status == 0, done.stderr
    assert [each["file"] for each in found["patches"]] == ["parts/fit.py"]
    assert path.read_text().endswith("optimizer.step()\n            optimizer.zero_grad()\n")


@pytest.mark.slow
def test_a_script_elsewhere_is_left_alone(
    check: Check, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tmp_path / "work").mkdir()
    path = write(tmp_path_factory.mktemp("elsewhere"), NOT_CLEARED)
    (tmp_path / "work" / "train.py").symlink_to(path)
    done, _ = check("--fix", "work/train.py")
    assert done.status == 1
    assert path.read_text() == NOT_CLEARED
    assert "is not a file in the working directory" in done.stderr


def test_a_file_that_has_been_changed_is_not_written(check: Check, tmp_path: Path) -> None:
    path = write(tmp_path, NOT_CLEARED + "open('train.py', 'a').write('# changed')\n")
    done, _ = check("--fix", "--in-place", "train.py")
    assert done.status == 2
    assert "train.py has been changed since it was run; nothing was written" in done.stderr
    assert path.read_text() == NOT_CLEARED + "open('train.py', 'a').write('# changed')\n# changed"


def test_what_is_not_found_again_is_not_repaired(check: Check, tmp_path: Path) -> None:
    again = "optimizer.step()\n        if 'harness-check' in os.environ.get('HARNESS_ISOLATED', ''): clear()"
    text = NOT_CLEARED.replace("optimizer.step()", again).replace("import torch\n", "import torch, os\n", 1)
    write(tmp_path, text.replace("for epoch", "clear = optimizer.zero_grad\nfor epoch", 1))
    done, found = check("--fix", "train.py")
    assert done.status == 1
    assert found["patches"][0]["why"] == "it is not found when the script runs again"


def test_ranks_are_refused(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "import sys\nprint('ran')\n")
    words = [sys.executable, "-m", "harness", "check", "--fix", "train.py"]
    environment = {**os.environ, "WORLD_SIZE": "2", "RANK": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "start it without a launcher" in done.stderr
    assert done.stdout == ""


def test_libcst_is_imported_for_repairs_only(check: Check, tmp_path: Path) -> None:
    write(tmp_path, RIGHT + "import sys\nprint([each for each in sys.modules if 'libcst' in each])\n")
    assert check("train.py")[0].stdout == "[]\n"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.nightly) for each in (signal.SIGINT, signal.SIGTERM))],
)
def test_an_interrupt_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    work, scratch = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    scratch.mkdir()
    # It waits where an edit is tried.
    path = write(work, f"import os, time\nif 'harness-check-' in os.getcwd(): time.sleep(600)\n{NOT_CLEARED}")
    before = path.read_text()
    words = [sys.executable, "-m", "harness", "check", "--fix", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)}
    process = subprocess.Popen(words, cwd=work, env=environment, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 200
    while not list(scratch.glob("harness-check-*/1/start-1/pid-0")) and time.monotonic() < until:
        time.sleep(0.2)
    (file,) = scratch.glob("harness-check-*/1/start-1/pid-0")
    child = int(file.read_text())
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (2 if number != signal.SIGKILL else -signal.SIGKILL)
    assert path.read_text() == before
    while (os.path.exists(f"/proc/{child}") or os.listdir(scratch)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not os.path.exists(f"/proc/{child}")
    assert os.listdir(scratch) == []
    if number != signal.SIGKILL:
        assert "interrupted while testing edits; nothing was written" in said


def finding(check: str) -> Finding:
    return Finding("", "", "", check=check)


MENDED, QUIET = "rows::same-order-each-epoch", "rows::evaluation-augmented"
BEFORE = CheckReport("train.py", 8, [finding(MENDED), finding("c::d")], held=["e::f", QUIET])


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (CheckReport("train.py", 8, [finding("c::d")], held=[MENDED, "e::f"]), None),
        (CheckReport("train.py", 9, [], held=[MENDED, "c::d", "e::f"]), None),
        (CheckReport("train.py", 8, [finding(MENDED)], held=["e::f"]), "it does not help: the finding is still there"),
        (CheckReport("train.py", 8, [finding("x::y")], held=[MENDED, "e::f"]), "x::y is found with it"),
        (CheckReport("train.py", 8, [], ignored=["x::y"], held=[MENDED, "e::f"]), "x::y is found with it"),
        (CheckReport("train.py", 8, [], held=[MENDED]), "with it, nothing is left for e::f to judge"),
        (
            CheckReport("train.py", 8, [], held=["e::f"]),
            "with it, nothing is left for rows::same-order-each-epoch to judge",
        ),
        (CheckReport("train.py", 7, [], held=[MENDED, "e::f"]), "the script makes fewer updates with it"),
        (
            CheckReport("train.py", 8, [], held=[MENDED, "e::f"], crashed="x\nKeyError: 1"),
            "the script crashes: KeyError: 1",
        ),
        (
            CheckReport("train.py", 8, [], held=[MENDED, "e::f"], not_looked_at=[NotLookedAt("x::y", "")]),
            "a check crashes with it",
        ),
        ("it takes more than 120 s", "it takes more than 120 s"),
    ],
)
def test_what_is_no_repair(after: CheckReport | str, says: str | None) -> None:
    assert _objection(MENDED, BEFORE, after) == says


KEPT = {each["name"]: each for each in json.loads(REPAIRS.read_text(encoding="utf-8"))["scripts"]}


def test_nothing_was_made_worse() -> None:
    assert [name for name, entry in KEPT.items() if is_worse(entry)] == []
    mended = {entry["check"] for entry in KEPT.values() if is_repaired(entry)}
    assert mended <= set(all_repairs())


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in cases() if case.kind == "bad"], ids=key)
def test_an_example_is_repaired_as_recorded(case: Case, pytestconfig: pytest.Config) -> None:
    if case.needed:
        pytest.skip(f"needs {' or '.join(case.needed)}")
    entry = repaired(server_of(pytestconfig), case)
    assert entry == KEPT.get(key(case), entry), "what is newer than the record is recorded with a release"
    assert not is_worse(entry)
    assert is_repaired(entry) <= (entry["left"] == [])
