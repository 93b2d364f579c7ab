"""``harness resume --every-event``, SIGTERM with a grace, and one rank that is killed alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.resume.events import different, kills_of, saves_to_try
from harness.resume.plan import asked_to_end, ranks_alone
from harness.resume.run import resume_script
from harness.starts.journal import Journal, Operation
from harness.starts.moments import Moment
from harness.starts.orders import KillPoint
from tests.resume.forked import CORPUS
from tests.resume.test_resume import resume, script
from tests.resume.test_rows import journal, saved

IN_PLACE = 'torch.save(state, "checkpoint.pt")'
ATOMIC = """torch.save(state, "checkpoint.pt" + ".new")
        os.replace("checkpoint.pt" + ".new", "checkpoint.pt")"""


def in_place(folder: Path) -> Path:
    """The script that overwrites its checkpoint."""
    text = (script(folder) / "train.py").read_text()
    assert ATOMIC in text
    (folder / "train.py").write_text(text.replace(ATOMIC, IN_PLACE))
    return folder


def of_operations(*made: tuple[int, str]) -> Journal:
    found = journal([(1, [0])] * 8)
    found.saves = [saved(at) for at in (2, 4, 6)]
    found.operations = [Operation(number, at, kind, "x", None) for number, (at, kind) in enumerate(made, start=1)]
    return found


@pytest.mark.parametrize(
    ("made", "chosen"),
    [
        ([(2, "open"), (4, "open"), (6, "open")], ((6,), (2, 4))),
        ([(2, "open"), (4, "open"), (4, "remove"), (6, "open")], ((4,), (2, 6))),  # that also removes something
        ([(2, "open"), (2, "remove"), (4, "open")], ((4,), (2, 6))),  # with a checkpoint before it
        ([(0, "mkdir"), (6, "open")], ((0, 6), (2, 4))),
        ([(3, "open")], ((), ())),  # no save's
    ],
)
def test_which_save_is_gone_through(made: list[tuple[int, str]], chosen: tuple[tuple[int, ...], ...]) -> None:
    assert saves_to_try(of_operations(*made)) == chosen


def moment(number: int, at: int = 4, holds: str = "", *, last: bool = False) -> Moment:
    operation = None if last else Operation(number, at, "open", "x", None)
    return Moment(number, at, operation, {"a": ("file", holds or f"{number}", "420", "0")})


def test_kills_before_the_first_operation_and_after_the_last_are_none_during_a_save() -> None:
    kinds = [kill.kind for kill in kills_of([moment(1), moment(2), moment(3), moment(4, last=True)])]
    assert kinds == ["after an update", "during a save", "during a save", "after an update"]
    kinds = [kill.kind for kill in kills_of([moment(1, 0), moment(2, 0), moment(3, 0, last=True)])]
    assert kinds == ["during a save", "during a save", "after an update"], "nothing lies before what comes first"


def test_moments_that_leave_the_same_are_tried_once() -> None:
    kills = kills_of([moment(1, holds="a"), moment(2, holds="b"), moment(3, holds="a"), moment(4, holds="b")])
    assert [kill.moment.number for kill in different(kills) if kill.moment] == [1, 2]


def test_ranks_are_killed_alone_after_an_update() -> None:
    found = ranks_alone(of_operations((4, "open")), 2, 0)
    assert [(each.rank, each.restarts) for each in found] == [(0, 0), (1, 0), (1, 1)]
    assert all(each.place == KillPoint(update=each.at) for each in found)
    short = journal([(1, [0])])
    short.saves = [saved(0)]  # a kill during that save is the only one
    assert ranks_alone(short, 2, 0) == asked_to_end(short, 1.0, 0) == []


def test_a_repro_is_of_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(script(tmp_path))
    result = CliRunner().invoke(main, ["resume", "--repro", "shown", "train.py"])
    assert (result.exit_code, "--repro goes with --every-event" in result.output) == (2, True)
    arguments = ["resume", "--every-event", "--processes", "2", "--repro", "shown", "train.py"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, "started in one process" in result.output) == (2, True), "before anything is started"
    (tmp_path / "shown").mkdir()
    result = CliRunner().invoke(main, ["resume", "--every-event", "--repro", "shown", "train.py"])
    assert (result.exit_code, "it is there already" in result.output) == (2, True)


@pytest.mark.slow
def test_every_event_of_a_save_that_overwrites(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Only the moments within the write lose something; what shows it can be run without the harness."""
    (tmp_path / "work").mkdir()
    caches = {"XDG_CACHE_HOME": str(tmp_path / "caches")}
    arguments = ("--every-event", "--repro", "shown", "--json", "report.json", "train.py")
    result = resume(pytestconfig, in_place(tmp_path / "work"), *arguments, **caches)
    assert result.status == 1, result.stderr
    report = json.loads((tmp_path / "work" / "report.json").read_text())
    assert [(each["event"], bool(each["lost"])) for each in report["kills"]] == [
        ("before save checkpoint.pt", False),
        ("within save checkpoint.pt", True),
        ("within save checkpoint.pt", True),
        ("after the last file operation", False),
        ("after the last file operation", False),
    ]
    assert [each["check"] for each in report["findings"]] == ["resume::checkpoint-torn"]
    assert (report["operations"], report["same"]) == (1, 1), "what lies behind a save lies before the next"
    assert report["kills"][1]["where"].startswith("train.py:")
    assert list((tmp_path / "caches" / "full-training-harness" / "resume").iterdir()) == []
    shown = tmp_path / "work" / "shown"
    done = subprocess.run([sys.executable, "repro.py"], cwd=shown, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1, done.stderr
    assert "it ends with exit status 1" in done.stdout
    assert "within save checkpoint.pt" in (shown / "ISSUE.md").read_text()


@pytest.mark.slow
def test_every_event_of_a_save_that_survives(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    result = resume(pytestconfig, script(tmp_path), "--every-event", "train.py", XDG_CACHE_HOME=str(tmp_path / "c"))
    assert result.status == 0, result.stderr
    assert "before rename checkpoint.pt.new to checkpoint.pt: continued after update 6, the same" in result.stderr


@pytest.mark.nightly
def test_what_was_tried_before_an_interruption_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(in_place(tmp_path / "work"))
    said = list[str]()

    def interrupts(line: str) -> None:
        said.append(line)
        if "within save" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resume_script("train.py", every_event=True, tell=interrupts)
    again = list[str]()
    report = resume_script("train.py", every_event=True, tell=again.append)
    assert [each.check for each in report.findings] == ["resume::checkpoint-torn"]
    (kept,) = (each for each in again if "were tried before" in each)
    assert int(kept.split()[0]) >= 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("asks", "says", "again"),
    [("", "saved nothing and the signal ended it", 2), ("HANDLES", "saved checkpoint.pt and ended", 0)],
)
def test_a_script_that_is_asked_to_end(
    asks: str, says: str, again: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (script(tmp_path) / "train.py").read_text()
    if asks:
        handles = "first, asked = 0, []\nimport signal\nsignal.signal(15, lambda *_: asked.append(1))\n"
        text = text.replace("first = 0\n", handles) + "        if asked: sys.exit()\n"
        text = text.replace("if batch % 3 == 2 and", "if asked or batch % 3 == 2 and")
    (tmp_path / "train.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    report = resume_script("train.py", count=1, grace=30.0)
    assert [each.lost for each in report.kills] == [(), ()]
    assert report.kills[1].kind == "by SIGTERM"
    assert report.kills[1].ended == says
    assert report.kills[1].again == (report.kills[0].again if again else 0)


@pytest.mark.nightly
@pytest.mark.distributed
def test_each_rank_is_killed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("train.py").write_text((CORPUS / "right" / "ddp_sampler.py").read_text())
    report = resume_script("train.py", processes=2, every_event=True)
    assert not report.findings
    alone = [each for each in report.kills if each.event is None]
    assert [each.kind for each in alone] == [
        "one rank alone: rank 0",
        "one rank alone: rank 1",
        "one rank alone: rank 1, restarted by its launcher",
    ]
    assert all(each.resumed_from for each in alone)
