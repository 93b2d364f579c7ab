"""A project that has a package ``harness`` of its own gets its own, and ours works all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUG = ROOT / "tests" / "checks" / "gradients" / "not-cleared" / "bad.py"

THEIRS = """
import pytest
import torch

def test_theirs():
    from harness import which
    from harness.later import again
    import harness.sub
    assert which() == again() == harness.sub.which() == "theirs"

def test_ours(watch):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(Exception, match="gradients::not-cleared"), watch():
        for _ in range(4):
            model(torch.randn(4, 2)).pow(2).mean().backward()
            optimizer.step()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "harness"
    package.mkdir()
    (package / "__init__.py").write_text("from .sub import which\n")
    (package / "sub.py").write_text("def which():\n    return 'theirs'\n")
    (package / "later.py").write_text("def again():\n    from harness.sub import which\n    return which()\n")
    (tmp_path / "conftest.py").touch()
    (tmp_path / "test_it.py").write_text(THEIRS)
    (tmp_path / "train.py").write_text(f"from harness import which\n{BUG.read_text()}\nprint('says', which())\n")
    return tmp_path


def done(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"} | environment
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)


MAIN = ["-c", "import pytest; raise SystemExit(pytest.main())"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["-m", "pytest"], pytest.param(MAIN, marks=pytest.mark.nightly)])
def test_their_suite_runs_and_has_our_fixtures(project: Path, command: list[str]) -> None:
    ran = done(project, sys.executable, *command)
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, marks=pytest.mark.nightly, id="as it is"),
        pytest.param({"PYTHONPATH": "."}, id="first on the path"),
    ],
)
def test_their_script_is_checked(project: Path, environment: dict[str, str]) -> None:
    ran = done(project, str(Path(sys.executable).with_name("harness")), "check", "train.py", **environment)
    assert ran.returncode == 1, ran.stderr
    assert "says theirs" in ran.stdout
    assert "error: gradients::not-cleared" in ran.stderr


@pytest.mark.nightly
def test_a_module_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "harness.py").write_text("which = 'theirs'\n")
    (tmp_path / "train.py").write_text(f"import harness\nprint('says', harness.which)\n{BUG.read_text()}")
    ran = done(tmp_path, str(Path(sys.executable).with_name("harness")), "check", "train.py")
    assert (ran.returncode, ran.stdout) == (1, "says theirs\n")


@pytest.mark.nightly
def test_nothing_is_replaced_without_one(tmp_path: Path) -> None:
    shutil.copy(BUG, tmp_path / "train.py")
    with (tmp_path / "train.py").open("a") as script:
        script.write("import builtins\nprint(builtins.__import__.__module__)\n")
    ran = done(tmp_path, str(Path(sys.executable).with_name("harness")), "check", "train.py")
    assert ran.stdout == "builtins\n"


@pytest.mark.nightly
def test_a_checkout_of_ours_beside_the_installation_is_no_other_package(tmp_path: Path) -> None:
    """Else a recipe of one's own would be of another copy's class."""
    shutil.copytree(ROOT / "harness", tmp_path / "harness", ignore=shutil.ignore_patterns("__pycache__", "assets"))
    (tmp_path / "mine.py").write_text(
        "from harness.documented_run.recipe import Recipe\nx = Recipe(name='x', data='absent')\n"
    )
    ran = done(tmp_path, str(Path(sys.executable).with_name("harness")), "run", "--recipe", "mine.py:x", PYTHONPATH=".")
    assert ran.stdout.startswith("recipe x "), ran.stderr


@pytest.mark.nightly
def test_a_folder_of_that_name_that_no_import_would_find(tmp_path: Path) -> None:
    """The script's folder is on the path, and the working directory is not."""
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "__init__.py").write_text("which = 'theirs'\n")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "train.py"
    script.write_text(f"import harness\nprint('the command is in it:', hasattr(harness, 'cli'))\n{BUG.read_text()}")
    ran = done(tmp_path, str(Path(sys.executable).with_name("harness")), "check", "scripts/train.py")
    assert (ran.returncode, ran.stdout) == (1, "the command is in it: True\n")
