"""What scripts may do to files, in every way and at every level of isolation: the user's are as they were.

With a private view of the file system that holds of all writers. In a mirror, each is undone, held back, or named with
exit status 2.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.starts.levels import LEVELS, Level, why_not
from tests.starts import writers
from tests.starts.trees import listing, tree

ROOT = Path(__file__).parents[2]

TEN = (
    "write",
    "remove a tree",
    "rename",
    "sqlite",
    "fork",
    "torch",
    "shell",
    "spawn",
    "exit handlers",
    "daemon threads",
)
"""Writers that the first ring tries."""

ALL = tuple(writers.WRITERS)


Done = subprocess.CompletedProcess[str]


class Project:
    """A folder with a script, and one outside; both are compared at the end."""

    def __init__(self, root: Path) -> None:
        self.root, self.outside = root, tree(root / "outside")
        self.project = tree(root / "home" / "project")
        shutil.copy(writers.__file__, self.project / "train.py")
        for folder in (self.project, self.outside):
            subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
        (root / "tmp").mkdir()
        time.sleep(0.02)
        self.before = self.listing()

    def listing(self) -> dict[str, tuple[object, ...]]:
        return listing(self.root / "home", self.outside)

    def environment(self, level: Level) -> dict[str, str]:
        own = {"XDG_CACHE_HOME": str(self.root / "cache"), "TMPDIR": str(self.root / "tmp")}
        return {**os.environ, **own, "PYTHONPATH": str(ROOT), "HARNESS_ISOLATION": level, "OMP_NUM_THREADS": "1"}

    def words(self, command: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "harness", command, "--json", str(self.root / "found.json"), *arguments]

    def run(
        self, level: Level, at: str, names: Sequence[str], command: str = "check"
    ) -> subprocess.CompletedProcess[str]:
        full = ["--full"] if command in ("check", "describe") else []
        script = ["train.py", at, *names]
        if command == "compare":
            given = shlex.join(script[1:])
            script = ["train.py", "train.py", "--args-a", given, "--args-b", given]
        words = self.words(command, *full, *script)
        return subprocess.run(
            words, cwd=self.project, env=self.environment(level), capture_output=True, text=True, check=False
        )

    def changed(self) -> list[str]:
        after = self.listing()
        return sorted(path for path in {*self.before, *after} if self.before.get(path) != after.get(path))

    def left(self) -> list[str]:
        """What the command has left in the folders for temporary files and caches."""
        folders = [self.root / "tmp", self.root / "cache" / "full-training-harness"]
        return [
            os.path.join(below, name) for folder in folders for below, _, names in os.walk(folder) for name in names
        ]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def needs(level: Level) -> None:
    if (why := why_not(level)) is not None:
        pytest.skip(f"{level}: {why}")


def holds(project: Project, level: Level, done: Done) -> None:
    """Whether nothing has changed, or, but for a view, all that did is named."""
    time.sleep(0.1)
    if level == "overlay":
        assert done.returncode == 0, done.stderr
        assert project.changed() == []
    else:
        named = json.loads((project.root / "found.json").read_text())["isolation"]
        told = [*named["changed"], *named["not_put_back"]]
        folders = {os.path.dirname(path) for path in told}  # whose times change with what lies in them
        assert [path for path in project.changed() if path not in told and path not in folders] == []
        assert done.returncode == (2 if told or named["refused"] else 0), done.stderr
    assert project.left() == []


@pytest.mark.parametrize("level", ["overlay", "mirror"])
def test_ten_writers_outside_of_the_working_directory(level: Level, project: Project) -> None:
    needs(level)
    done = project.run(level, str(project.outside), TEN)
    assert "all was written" in done.stdout
    holds(project, level, done)
    isolation = json.loads((project.root / "found.json").read_text())["isolation"]
    assert isolation["level"] == level
    assert "echo" in isolation["programs"]
    assert bool(isolation["refused"]) == (level == "mirror")


@pytest.mark.nightly
@pytest.mark.parametrize("where", ["relative", "absolute", "outside"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_writer(level: Level, where: str, project: Project) -> None:
    needs(level)
    at = {"relative": ".", "absolute": str(project.project), "outside": str(project.outside)}[where]
    names = [name for name in ALL if level == "overlay" or name != "detached" or where != "outside"]
    if level == "guard" and where != "relative":
        names = [name for name in names if name not in (*writers.PROGRAMS, *writers.UNHEARD)]  # docs/isolation.md
    done = project.run(level, at, names)
    assert "all was written" in done.stdout, done.stderr
    holds(project, level, done)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ALL)
def test_each_writer_alone_in_a_mirror(name: str, project: Project) -> None:
    needs("mirror")
    holds(project, "mirror", project.run("mirror", str(project.outside), [name]))


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["describe", "compare", "vary"])
def test_every_writer_under_every_command(command: str, project: Project) -> None:
    needs("overlay")
    names = [name for name in ALL if name not in ("detached", "daemon threads")]  # they make each start another
    done = project.run("overlay", str(project.outside), names, command)
    assert done.returncode in (0, 1), done.stderr
    assert project.changed() == []
    assert project.left() == []


def _kill(project: Project, level: Level, after: float, forks: bool) -> None:
    names = ["fork", "torch", "replace", "sqlite", "subprocess"] * 4 + ["detached"] * forks
    process = subprocess.Popen(
        project.words("check", "--full", "train.py", str(project.outside), *names),
        cwd=project.project,
        env=project.environment(level),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["overlay", "mirror"])
def test_a_kill_at_any_moment_changes_nothing(level: Level, project: Project) -> None:
    needs(level)
    draw = random.Random(0)
    for number in range(25):
        _kill(project, level, draw.uniform(0.2, 6.0), forks=bool(number % 2))
        until = time.monotonic() + 10
        while (project.changed() or project.left()) and time.monotonic() < until:
            time.sleep(0.05)
        assert project.changed() == []
        assert project.left() == []
    own = str(project.root).encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                assert own not in (entry / "cmdline").read_bytes()
            except OSError:
                continue


CORPUS = os.environ.get("HARNESS_CORPORA")


@pytest.mark.nightly
@pytest.mark.skipif(CORPUS is None, reason="the corpora are not here: set HARNESS_CORPORA")
@pytest.mark.parametrize("arguments", ["late_writers", "programs git", "programs rm", "programs spawn", "crowded_walk"])
@pytest.mark.parametrize("level", ["overlay", "mirror"])
def test_the_corpus_of_hostile_scripts(level: Level, arguments: str, project: Project) -> None:
    needs(level)
    name, *words = arguments.split()
    shutil.copy(Path(str(CORPUS), "hostile", "2026-11-29", f"{name}.py"), project.project / "train.py")
    for folder, ending, count in (("samples", "png", 1200), ("data/train", "txt", 1500)):
        (project.project / folder).mkdir(parents=True)
        for number in range(count):
            (project.project / folder / f"{number}.{ending}").write_text(f"{number / count}")
    for name in ("atexit.txt", "daemon.txt", "rm.txt", "results.csv", "tracked.txt"):
        (project.project / name).write_text("mine")
        (project.outside / name).write_text("mine")
    time.sleep(0.02)
    project.before = project.listing()
    environment = {**project.environment(level), "OUT": str(project.outside), "ROOT": str(project.project)}
    done = subprocess.run(
        project.words("check", "--full", "train.py", *words),
        cwd=project.project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    holds(project, level, done)


REFUSES = """
import sys
from harness.starts import view

def enter(folder):
    raise view.Refused("mount: Operation not permitted")

view.enter = enter
from harness.cli import main
main(sys.argv[1:])
"""


@pytest.mark.nightly
def test_a_view_that_is_refused_when_it_is_entered_gives_way_to_a_mirror(project: Project) -> None:
    needs("mirror")
    words = [sys.executable, "-c", REFUSES, *project.words("check", "train.py", str(project.outside), "write")[3:]]
    environment = project.environment("overlay")
    done = subprocess.run(words, cwd=project.project, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, project.changed()) == (2, [])
    assert "no private view of the file system could be made: mount: Operation not permitted" in done.stderr
    del environment["HARNESS_ISOLATION"]
    done = subprocess.run(words, cwd=project.project, env=environment, capture_output=True, text=True, check=False)
    holds(project, "mirror", done)
    assert json.loads((project.root / "found.json").read_text())["isolation"]["level"] == "mirror"
