"""The starts of train.py: what they leave, and what they do not."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.stages import launch
from harness.documented_run.stages.chain import Run
from harness.documented_run.stages.measures.results import Launched

UNDER_ACCELERATE = RECIPES["tiny"].with_(loop="accelerate")


@pytest.mark.parametrize(
    "run",
    [Run(UNDER_ACCELERATE), Run(UNDER_ACCELERATE.with_(processes=2), installation=True)],
    ids=["unasked", "in one of several processes"],
)
def test_nothing_is_started(run: Run) -> None:
    result = launch.STAGE.run(run)
    launch.STAGE.do(run)
    assert run.launched == {}
    assert {check.outcome for check in result.checks} == {"not applicable"}
    assert all("harness run --loop accelerate --installation does" in str(check.reason) for check in result.checks)


def test_another_loop_starts_nothing(small: Recipe) -> None:
    """Not even where it is asked for."""
    run = Run(small, installation=True)
    assert launch.STAGE.run(run).checks[0].reason == "about loop accelerate; this recipe has plain"


def test_the_command_line_refuses_it_in_several_processes() -> None:
    result = CliRunner().invoke(main, ["run", "--installation", "--loop", "accelerate", "--processes", "2"])
    assert result.exit_code == 2
    assert "--installation needs a single process" in result.output


def test_a_hung_start_is_ended(tmp_path: Path) -> None:
    code = "import os, time\nprint(os.getpid(), flush=True)\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    began = time.monotonic()
    found = launch.started([sys.executable, "-c", code], tmp_path, timeout=2)
    assert found.status is None
    assert time.monotonic() - began < 2 + launch.GRACE + 5
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("errors", "says"),
    [
        ("Traceback:\n  in main\nValueError: no rows\n\r 50%|##  | 1/2\r100%|####| 2/2\n", "ValueError: no rows"),
        (
            "[rank1]: KeyError: 'labels'\ntorch.distributed.elastic.ChildFailedError: \n=====\n",
            "[rank1]: KeyError: 'labels'",
        ),
        ("KeyError: 'lr'\nsubprocess.CalledProcessError: Command '['python']'\n", "KeyError: 'lr'"),
        ("subprocess.CalledProcessError: died\n", "subprocess.CalledProcessError: died"),
        ("usage: train.py\nno such option\n\r100%|####| 2/2", "no such option"),
        ("\r100%|####| 2/2", ""),
    ],
    ids=["a bar behind it", "of a rank", "of a launcher's process", "a launcher's own", "no error", "a bar alone"],
)
def test_what_began_it_is_said(errors: str, says: str) -> None:
    assert launch._says(errors) == says


def test_a_failed_start_says_why(tmp_path: Path) -> None:
    found = launch.started([sys.executable, "-c", "raise SystemExit('no such option')"], tmp_path)
    assert (found.status, found.says, found.counted) == (1, "no such option", None)


def test_what_a_launcher_set_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "ACCELERATE_MIXED_PRECISION", "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HARNESS_DATA", "kept")
    given = launch.environment(tmp_path)
    assert not {"RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "ACCELERATE_MIXED_PRECISION", "TORCHELASTIC_RUN_ID"} & {
        *given
    }
    assert (given["HARNESS_DATA"], given["HF_HOME"]) == ("kept", str(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(
    ("asks", "kept"),
    [
        ("input('Which machine? ')", True),
        ("answer = ''\nwhile answer != '0':\n    answer = input('Which machine? ([0] this, [1] another): ')", True),
        ("raise SystemExit(2)", False),
    ],
    ids=["Enter", "numbered", "fails"],
)
def test_questions_are_answered(tmp_path: Path, asks: str, kept: bool) -> None:
    save = f"import os\nos.makedirs('accelerate')\nopen({launch.CONFIGURATION!r}, 'w').write('answers')"
    found = launch.answered([sys.executable, "-c", f"{asks}\n{save}"], tmp_path)
    assert found == (tmp_path / launch.CONFIGURATION if kept else None)


@pytest.mark.parametrize(
    ("printed", "counted"),
    [('loading\n{"updates": 2}\n', {"updates": 2}), ("", None), ("2\n", None), ('{"updates": 2}\ndone\n', None)],
)
def test_counts_are_in_the_last_line(printed: str, counted: dict[str, float] | None) -> None:
    assert launch.counts(printed) == counted


RIGHT = {
    name: Launched(0, counted={"processes": starter.processes, "updates": 2, "lr": 0.0, "accuracy": 0.5, "f1": 0.6})
    for name, starter in launch.STARTERS.items()
}
STARTS = {
    "python-trains": "python",
    "torchrun-trains": "torchrun",
    "accelerate-launch-trains": "accelerate launch",
    "accelerate-launch-distributes": "accelerate launch, two processes",
    "notebook-launcher-trains": "notebook_launcher",
    "notebook-launcher-trains-as-printed": "notebook_launcher, as printed",
}
WRONG = {
    "fails": Launched(1, "ValueError: no rows"),
    "hangs": Launched(None),
    "says nothing": Launched(0),
    "does not finish": Launched(0, counted={"processes": 1, "updates": 1, "lr": 0.01, "accuracy": 0.5, "f1": 0.5}),
    "counts in percent": Launched(0, counted={"processes": 1, "updates": 2, "lr": 0.0, "accuracy": 50, "f1": 60}),
}


def outcome(check: str, launched: dict[str, Launched], configured: Path | None = Path("answers")) -> str:
    run = Run(UNDER_ACCELERATE, installation=True)
    run.launched, run.configured = launched, configured
    (found,) = (each(run) for each in launch.STAGE.checks if each.id == f"launch::{check}")
    return found.outcome


@pytest.mark.parametrize("check", STARTS)
def test_a_check_tells_a_start_that_failed_from_one_that_trained(check: str) -> None:
    assert outcome(check, RIGHT) == "holds"
    for wrong in WRONG.values():
        assert outcome(check, RIGHT | {STARTS[check]: wrong}) == "fails"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_check_tells_whether_the_answers_were_kept_and_used() -> None:
    check = "the-answers-are-kept-and-used"
    assert outcome(check, RIGHT) == "holds"
    assert outcome(check, RIGHT, configured=None) == "fails"
    assert outcome(check, RIGHT | {"accelerate launch": Launched(0, warned=True)}) == "fails"
