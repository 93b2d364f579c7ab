"""Scripts in an isolated working directory: what they may do to files, and what is left of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.errors import CannotTry
from harness.findings import Isolation
from harness.put_back import CannotKeep, logs_folder
from harness.starts import mirror
from harness.starts.fresh import pattern_of
from harness.starts.guard import Stays
from harness.starts.isolated import isolated, shared
from harness.starts.workdir import Command, scratch
from tests.server import launched, server_of
from tests.starts.trees import listing, tree

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project to work in, with a folder elsewhere; all files are large. They are compared at the end."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(mirror, "SMALL", 0)
    (tmp_path / "tmp").mkdir()
    elsewhere = tree(tmp_path / "elsewhere")
    sqlite3.connect(elsewhere / "database").execute("create table t (x)").connection.close()
    project = tree(tmp_path / "home" / "project")
    (project / "train.py").write_text("")
    (project / "away").symlink_to(elsewhere)
    monkeypatch.chdir(project)
    before = listing(tmp_path / "home", elsewhere)
    yield tmp_path
    assert listing(tmp_path / "home", elsewhere) == before
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list(logs_folder().iterdir()) == [] if logs_folder().exists() else True


def run(script: Callable[[Path], object], folder: Path | None = None) -> Isolation:
    """What becomes of files where this is done instead of a script, in the folder or the working directory."""
    with isolated("train.py") as place:
        script(Path.cwd() if folder is None else folder)
        return place.close()


def database(at: Path) -> None:
    connection = sqlite3.connect(at / "database")
    connection.execute("create table if not exists u (x)")
    connection.execute("insert into u values (1)")
    connection.commit()
    connection.close()


def archive(at: Path) -> None:
    torch.save({"a": torch.zeros(2)}, at / "a")
    torch.save({"a": torch.zeros(2)}, str(at / "new.pt"))


def safetensors(at: Path) -> None:
    save = pytest.importorskip("safetensors.torch").save_file
    save({"a": torch.zeros(2)}, at / "a")
    save({"a": torch.zeros(2)}, str(at / "new.safetensors"))


def tokenizer(at: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "a")).save(str(at / "a"))


def parquet(at: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": [1]}), str(at / "a"))


def scripted(at: Path) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(at / "a"))


def memory_map(at: Path) -> None:
    with (at / "a").open("ab") as file:
        file.write(b"\0" * 8)
    mapped = np.memmap(at / "a", dtype="u1", mode="r+")
    mapped[:] = 7
    mapped.flush()


def by_descriptor(at: Path) -> None:
    folder = os.open(at, os.O_RDONLY)
    os.unlink("a", dir_fd=folder)
    os.rename("c", "new", src_dir_fd=folder, dst_dir_fd=folder)
    os.mkdir("folder", dir_fd=folder)
    os.close(folder)


def removed_and_made(at: Path) -> None:
    shutil.rmtree(at / "d")
    (at / "d").mkdir()
    (at / "d" / "e").write_text("another")


def replaced(at: Path) -> None:
    (at / ".new").write_text("new")
    os.replace(at / ".new", at / "a")


def linked(at: Path) -> None:
    os.link(at / "a", at / "new")
    (at / "new").write_text("another")
    (at / "symbolic").symlink_to(at / "b")
    (at / "symbolic").write_text("another")


CHANGES: dict[str, Callable[[Path], object]] = {
    "written": lambda at: (at / "a").write_text("another"),
    "appended": lambda at: (at / "a").open("a").write("more"),
    "through a link": lambda at: (at / "link").write_text("another"),
    "one of two names": lambda at: (at / "b").write_text("another"),
    "below a folder": lambda at: (at / "d" / "e").write_text("another"),
    "made": lambda at: (at / "new").write_text("new"),
    "folders made": lambda at: os.makedirs(at / "new" / "deep"),
    "removed": lambda at: (at / "a").unlink(),
    "a link removed": lambda at: (at / "link").unlink(),
    "folder removed": lambda at: (at / "d" / "f").rmdir(),
    "tree removed": lambda at: shutil.rmtree(at / "d"),
    "removed and made": removed_and_made,
    "renamed": lambda at: (at / "a").rename(at / "b"),
    "folder renamed": lambda at: (at / "d").rename(at / "new"),
    "replaced": replaced,
    "truncated": lambda at: os.truncate(at / "a", 0),
    "mode": lambda at: (at / "a").chmod(0o600),
    "times": lambda at: os.utime(at / "a", (1, 1)),
    "linked": linked,
    "by descriptor": by_descriptor,
    "database": database,
    "memory map": memory_map,
    "numpy": lambda at: np.save(at / "new.npy", np.zeros(2)),
    "numpy, to a file": lambda at: np.zeros(2).tofile(at / "a"),
    "copied": lambda at: shutil.copy2(at / "b", at / "a"),
    "in a temporary file": lambda at: os.replace(tempfile.mkstemp(dir=at)[1], at / "a"),
    "torch.save": archive,
    "safetensors": safetensors,
    "tokenizers": tokenizer,
    "pyarrow": parquet,
    "torch.jit": scripted,
}


@pytest.mark.parametrize(
    "place", ["in the working directory", pytest.param("beside it", marks=pytest.mark.nightly), "elsewhere"]
)
@pytest.mark.parametrize("how", CHANGES)
def test_what_a_script_does_to_files_is_gone(how: str, place: str, home: Path) -> None:
    if place != "elsewhere":
        run(lambda at: CHANGES[how](at if place == "in the working directory" else at / "away"))
        return
    found = run(CHANGES[how], home / "elsewhere")
    assert found.put_back
    assert not found.changed


def test_a_script_sees_what_it_wrote(home: Path) -> None:
    def script(at: Path) -> None:
        (at / "a").write_text("another")
        (at / "away" / "a").write_text("far")
        assert (at / "a").read_text() == "another"
        assert (at / "away" / "a").read_text() == "far"
        assert Path("../project/a").read_text() == "another"
        assert Path(os.environ["PWD"], "a").read_text() == "another"
        assert (home / "elsewhere" / "a").read_text() == "a"

    found = run(script)
    assert (found.kind, found.wrote, found.bytes) == ("directory", 2, 10)
    assert [*found.lines(quiet=True)] == []
    assert [*found.lines()] == ["  wrote 2 files, 10 bytes; not kept (--keep FOLDER keeps them)"]


def test_a_file_is_moved_to_another_file_system(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def between(source: str, target: str) -> None:
        if "harness-run-" in str(source) and "harness-run-" not in str(target):
            raise OSError(18, "Invalid cross-device link")
        rename(source, target)

    monkeypatch.setattr(os, "replace", between)

    def script(at: Path) -> None:
        (at / "new").write_text("new")
        os.replace(at / "new", home / "elsewhere" / "a")
        assert (home / "elsewhere" / "a").read_text() == "new"
        assert not (at / "new").exists()

    run(script)


def test_what_was_written_is_kept_where_it_is_asked_for(home: Path, tmp_path: Path) -> None:
    with isolated("train.py", keep=tmp_path / "kept") as place:
        Path("out").mkdir()
        Path("out", "model").write_text("model")
        (home / "elsewhere" / "new").write_text("new")
        found = place.close()
    assert (tmp_path / "kept" / "out" / "model").read_text() == "model"
    assert (tmp_path / "kept" / f"outside{home}" / "elsewhere" / "new").read_text() == "new"
    assert found.kept_in == str(tmp_path / "kept")
    assert f"kept in {tmp_path / 'kept'}" in [*found.lines()][-1]


def test_all_is_put_back_where_nothing_can_be_kept(home: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    with isolated("train.py", keep=tmp_path / "kept") as place:
        Path("new").write_text("new")
        (home / "elsewhere" / "a").write_text("another")
        with pytest.raises(CannotTry, match=r"--keep .*kept could not receive .*/new"):
            place.close()


def test_what_changed_unheard_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_ISOLATION", "guard")
    before = (home / "home" / "project" / "a").stat()

    def script(at: Path) -> None:
        subprocess.run(["sh", "-c", f"echo more >> {home}/home/project/a"], check=True)

    found = run(script)
    assert found.harmed
    assert found.changed == [str(home / "home" / "project" / "a")]
    assert [*found.lines(quiet=True)] == [
        f"  changed, perhaps by sh, which it started, and not restored: {home}/home/project/a"
    ]
    (home / "home" / "project" / "a").write_text("a")
    os.utime(home / "home" / "project" / "a", ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_something_else_changed_meanwhile_is_no_harm(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "SMALL", 100)
    file = home / "home" / "project" / "a"
    before = file.stat()
    other = f"input(); open({str(file)!r}, 'w').write('a')"
    process = subprocess.Popen([sys.executable, "-S", "-c", other], stdin=subprocess.PIPE)
    found = run(lambda at: process.communicate(b"\n"))
    assert not found.harmed
    assert found.elsewhere == [str(file)]
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_nothing_is_changed_that_cannot_be_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with isolated("train.py") as place:
        monkeypatch.setattr("harness.put_back.copy_file", full)
        with pytest.raises(CannotKeep):
            (home / "elsewhere" / "a").write_text("another")
        with pytest.raises(CannotTry, match=r"elsewhere/a .*No space left on device.*; free some space"):
            place.close()


def test_a_script_that_fills_the_disk_is_told_so(home: Path) -> None:
    with (
        isolated("train.py") as place,
        pytest.raises(CannotTry, match=r"no space left for what train.py writes in .*tmp, "),
    ):
        place.close("Traceback\nOSError: [Errno 28] No space left on device: 'last.pt'")


def test_without_room_for_the_directory_the_script_does_not_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mirror, "SMALL", 100)
    monkeypatch.setattr(mirror, "copy_file", full)
    with (
        pytest.raises(CannotTry, match=r"no isolated working directory .*No space left.*; set TMPDIR"),
        isolated("train.py"),
    ):
        pytest.fail("it ran")


def test_caches_of_libraries_may_grow(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = home / "cache" / "huggingface" / "hub"

    def script(at: Path) -> None:
        cache.mkdir(parents=True)
        (cache / "file").write_text("x")

    found = run(script)
    assert (cache / "file").exists()
    assert found.put_back == []


def test_this_process_is_as_it_was(home: Path) -> None:
    before = dict(os.environ), os.getcwd(), sys.path[:], tempfile.gettempdir(), os.replace, torch._C.PyTorchFileWriter
    run(lambda at: None)
    after = dict(os.environ), os.getcwd(), sys.path[:], tempfile.gettempdir(), os.replace, torch._C.PyTorchFileWriter
    assert after == before


def test_what_a_fork_writes_is_gone_too(home: Path) -> None:
    def script(at: Path) -> None:
        if not os.fork():
            (at / "a").write_text("another")
            (home / "elsewhere" / "a").write_text("another")
            os._exit(0)
        os.wait()
        assert (at / "a").read_text() == "another"

    found = run(script)
    assert found.put_back == [str(home / "elsewhere" / "a")]


def test_an_installed_project_is_found_in_the_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(home / "home" / "project"))
    run(lambda at: [] if str(at) in sys.path else pytest.fail("its modules would write beside themselves"))


def test_a_script_elsewhere_writes_beside_itself(home: Path) -> None:
    script = home / "elsewhere" / "b"
    with isolated(str(script)) as place:
        assert place.script != str(script)
        Path(place.script).with_name("new").write_text("new")
        assert place.real(place.script) == str(script)


def test_what_is_hidden_is_not_there(home: Path) -> None:
    with isolated("train.py", hidden=["d/*", "a"]) as place:
        assert not Path("a").exists()
        assert list(Path("d").iterdir()) == []
        found = place.close()
    assert [*found.lines()] == ["  hidden: d/*, a, which the script saved and would continue from"]


def test_several_processes_share_a_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_ISOLATION", "mirror")  # this process could not leave a view
    folder = str(home / "home" / "project")
    with shared([folder]) as directory, directory.entered():
        with isolated("train.py") as place:
            Path("shared").write_text("x")
            assert not place.owner
        with isolated("train.py") as place:
            assert Path("shared").read_text() == "x"
            assert place.close().wrote == 0


def test_in_place_says_what_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tree(tmp_path / "project")
    monkeypatch.chdir(project)
    with isolated("train.py", in_place=True) as place:
        Path("a").write_text("another")
        Path("new").write_text("new")
        Path("d", "e").unlink()
        found = place.close()
    assert Path("a").read_text() == "another"
    assert found.kind == "in place"
    assert sorted(found.changed) == [str(project / "a"), str(project / "d" / "e")]
    assert not found.harmed


TRAIN = """
import os, sys, time, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if os.path.exists("last.pt"):
    state = torch.load("last.pt")
    model.load_state_dict(state["model"]), optimizer.load_state_dict(state["optimizer"])
    done = state["done"]
else:
    done = 0
rows, labels = torch.randn(64, 4), torch.randint(2, (64,))
for step in range(done, 8):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(rows), labels).backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "done": step + 1}, "last.pt")
torch.save(model.state_dict(), "final.pt")
torch.save(model.state_dict(), os.environ["ELSEWHERE"])
"""


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a model was trained, and a file elsewhere that the script writes too."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "train.py").write_text(TRAIN)
    (tmp_path / "elsewhere").mkdir()
    for name in ("cache", "tmp"):
        (tmp_path / name).mkdir()
    for name, value in (
        ("ELSEWHERE", tmp_path / "elsewhere" / "model.pt"),
        ("XDG_CACHE_HOME", tmp_path / "cache"),
        ("TMPDIR", tmp_path / "tmp"),
    ):
        monkeypatch.setenv(name, str(value))
    subprocess.run([sys.executable, "train.py"], cwd=project, check=True)
    return project


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("last.pt", "last.pt"),
        ("epoch3.pt", "epoch*.pt"),
        ("out/checkpoint-32/optimizer.pt", "out/checkpoint-*"),
        ("run1/ckpt/step_20.pt", "run1/ckpt/step_*.pt"),
    ],
)
def test_what_a_script_saves_under_other_numbers(path: str, pattern: str) -> None:
    assert pattern_of(path) == pattern


def test_what_the_starts_of_a_script_changed_unheard_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_ISOLATION", "mirror")
    file = home / "home" / "project" / "a"
    before = file.stat()
    with scratch("harness-test-") as given:
        workdir = given.workdir(0, Command("train.py"))
        file.write_text("another")
        with pytest.raises(CannotTry, match=r"train.py changed .*project/a without the harness noticing"):
            workdir.remove()
    file.write_text("a")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_scripts_that_are_compared_leave_the_trained_model_alone(
    trained: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    before = drop_folders(listing(tmp_path / "home", tmp_path / "elsewhere"))
    words = ("--command", "compare", "--fresh", "train.py", "train.py")
    environment = {"ELSEWHERE": os.environ["ELSEWHERE"]}
    done = server_of(pytestconfig).run(trained, *words, program="tests.resume.forked", environment=environment)
    assert done.status == 0, done.stderr
    assert drop_folders(listing(tmp_path / "home", tmp_path / "elsewhere")) == before


def test_what_guards_files_stays_on_when_it_has_failed() -> None:
    calls: list[int] = []

    def fails() -> None:
        calls.append(1)
        raise RuntimeError

    hook = Stays().guarded(fails)
    hook()
    hook()
    assert len(calls) == 2


@pytest.mark.slow
def test_a_checked_script_leaves_the_trained_model_alone(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_ISOLATION", "mirror")
    (trained / "last.pt").unlink()
    before = listing(tmp_path / "home", tmp_path / "elsewhere")
    done = launched(trained, "harness", "check", "--json", "found.json", "train.py")
    assert done.status == 0, done.stderr
    assert re.search(r"wrote 3 files, \d kB; not kept .*; restored: ", done.stderr)
    found = json.loads((trained / "found.json").read_text())["isolation"]
    assert (found["kind"], found["wrote"]) == ("directory", 3)
    (trained / "found.json").unlink()
    assert drop_folders(listing(tmp_path / "home", tmp_path / "elsewhere")) == drop_folders(before)
    assert list((tmp_path / "tmp").glob("harness-*")) == []


def drop_folders(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    return {path: about for path, about in found.items() if about[3] is not None}


def test_a_run_that_continues_from_a_finished_one_begins_anew(trained: Path, pytestconfig: pytest.Config) -> None:
    words = ("--command", "check", "--fresh", "train.py")
    environment = {"ELSEWHERE": os.environ["ELSEWHERE"]}
    fresh = server_of(pytestconfig).run(trained, *words, program="tests.resume.forked", environment=environment)
    assert fresh.status == 0, fresh.stderr
    assert "  hidden: last.pt, which the script saved and would continue from" in fresh.stderr
    assert "nothing found in 8 updates" in fresh.stderr


@pytest.mark.slow
def test_a_command_that_is_killed_leaves_nothing(trained: Path, tmp_path: Path) -> None:
    (trained / "last.pt").unlink()
    text = TRAIN + "open(os.environ['ELSEWHERE'] + '.done', 'w').close(), time.sleep(600)\n"
    (trained / "train.py").write_text(text)
    before = listing(tmp_path / "home", tmp_path / "elsewhere")
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "check", "train.py"],
        cwd=trained,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HARNESS_ISOLATION": "mirror"},
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 100
    while not (tmp_path / "elsewhere" / "model.pt.done").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert listing(tmp_path / "elsewhere") != before, "it came so far"
    process.send_signal(signal.SIGKILL)
    process.wait()
    while list((tmp_path / "tmp").glob("harness-*")) and time.monotonic() < until:
        time.sleep(0.05)
    assert listing(tmp_path / "home", tmp_path / "elsewhere") == before
    assert list((tmp_path / "tmp").glob("harness-*")) == []
