"""Files that are put back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import put_back
from harness.put_back import LOG, CannotKeep, Log, changes_in, left_behind, log_name, newer
from tests.starts.trees import listing, tree

NAMES = ["a", "b", "b2", "c", "d", "d/e", "d/f", "d/f/g", "link", "new", "new/x", "other"]


def write(log: Log, at: Path) -> None:
    log.changes(os.path.realpath(at))
    at.write_text("another")


def append(log: Log, at: Path) -> None:
    log.changes(os.path.realpath(at))
    with at.open("a") as file:
        file.write("more")


def unlink(log: Log, at: Path) -> None:
    log.changes(str(at))
    at.unlink()


def make_folder(log: Log, at: Path) -> None:
    if not os.path.lexists(at):
        log.changes(str(at))
        at.mkdir()


def remove_folder(log: Log, at: Path) -> None:
    log.changes(str(at))
    at.rmdir()


def make_link(log: Log, at: Path) -> None:
    log.changes(str(at))
    at.symlink_to("c")


def change_mode(log: Log, at: Path) -> None:
    log.changes(os.path.realpath(at))
    at.chmod(0o640)


ALONE = [write, append, unlink, make_folder, remove_folder, make_link, change_mode]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from([*ALONE, None]), st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12)
)
def test_whatever_is_done_is_undone(done: list[tuple[object, str, str]]) -> None:
    with TemporaryDirectory() as name:
        home = Path(os.path.realpath(name))
        folder, log = tree(home / "tree"), Log(home / "log")
        before = listing(folder)
        for how, one, other in done:
            with suppress(OSError):
                if how is None:
                    log.moves(str(folder / one), str(folder / other))
                    os.replace(folder / one, folder / other)
                else:
                    how(log, folder / one)  # type: ignore[operator]
        assert put_back.put_back(home / "log") == []
        assert listing(folder) == before
        assert not (home / "log").exists()


def test_a_tree_that_is_taken_away_comes_back(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    before = listing(folder)
    log.removes_all(str(folder))
    shutil.rmtree(folder)
    assert put_back.put_back(log.folder) == []
    assert listing(folder) == before


def test_each_change_is_kept_before_it_is_made_and_once(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    log.changes(str(folder / "a"))
    (kept,) = [each for each in changes_in(log.folder) if each["kind"] == "file"]
    assert (log.folder / kept["kept"]).read_text() == "a"
    (folder / "a").write_text("another")
    log.changes(str(folder / "a"))
    assert len([each for each in changes_in(log.folder) if each["kind"] == "file"]) == 1


def test_of_saves_that_replace_one_another_the_first_alone_is_kept(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    before = listing(folder)
    for _ in range(5):
        write(log, folder / "new")
        log.moves(str(folder / "new"), str(folder / "a"))
        os.replace(folder / "new", folder / "a")
    assert [each["path"] for each in changes_in(log.folder) if each["kind"] == "file"] == [str(folder / "a")]
    assert put_back.put_back(log.folder) == []
    assert listing(folder) == before


def test_a_line_that_a_kill_has_cut_is_of_nothing(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    write(log, folder / "a")
    with (log.folder / LOG).open("a") as file:
        file.write('{"kind": "made", "path": "' + str(folder))
    assert put_back.put_back(log.folder) == []
    assert (folder / "a").read_text() == "a"


def test_without_room_the_change_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 0))
    with pytest.raises(CannotKeep, match=r"is about to change .*/a \(1 bytes\), and no copy to restore it from"):
        log.changes(str(folder / "a"))
    assert not any(each["kind"] == "file" for each in changes_in(log.folder))


def test_what_cannot_be_put_back_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    write(log, folder / "a")

    def fails(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(put_back, "_restore", fails)
    assert put_back.put_back(log.folder) == [f"{folder / 'a'} (Permission denied)"]
    assert (log.folder / LOG).exists()


def test_logs_of_commands_that_have_ended_are_left_behind(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    here = os.uname().nodename
    for name in (f"{ended.pid}@{here}-x", log_name("x"), f"{ended.pid}@elsewhere-x", "other"):
        (tmp_path / name).mkdir()
    assert [each.name for each in left_behind(tmp_path)] == [f"{ended.pid}@{here}-x"]


def test_it_needs_the_standard_library_alone(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "logs" / "1")
    before = listing(folder)
    write(log, folder / "a")
    (tmp_path / "scratch").mkdir()
    processes = Path(put_back.__file__).with_name("processes.py")
    words = [sys.executable, "-I", "-S", str(processes), str(tmp_path / "scratch"), str(tmp_path / "logs")]
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True)
    assert ran.stdout == "", "which ends when it has"
    assert listing(folder) == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["tree"]
    assert json.dumps(before, default=str)


def test_newer_work_of_another_stays(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    for name in "ab":
        write(log, folder / name)
        log.written(str(folder / name))
    log._looked = 0.0
    log.looks()
    time.sleep(0.02)
    (folder / "a").write_text("a real run's")
    assert newer(log.folder) == [str(folder / "a")]
    assert put_back.put_back(log.folder) == []
    assert [(folder / name).read_text() for name in "ab"] == ["a real run's", "b"]


def test_what_the_script_wrote_later_is_no_newer_work(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    write(log, folder / "a")
    log.written(str(folder / "a"))
    with (folder / "a").open("a") as file:
        log.looks()
        file.write("more, as of a log that stays open")
    assert newer(log.folder) == []
    log.looks()
    log.written(str(folder / "a"))
    (folder / "a").write_text("again")
    assert newer(log.folder) == []
    put_back.put_back(log.folder)
    assert (folder / "a").read_text() == "a"


def test_what_is_written_after_the_script_was_killed_stays(tmp_path: Path) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    write(log, folder / "a")
    write(log, folder / "b")
    ended = time.time()
    os.utime(folder / "a", (ended + 1, ended + 1))
    os.utime(folder / "b", (ended - 1, ended - 1))
    put_back.put_back(log.folder, ended)
    assert [(folder / name).read_text() for name in "ab"] == ["another", "b"]


def test_a_log_is_undone_once_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log = tree(tmp_path / "tree"), Log(tmp_path / "log")
    write(log, folder / "a")
    write(log, folder / "b")
    restore = put_back._restore

    def fails(kept: str, path: str, inode: int) -> None:
        if path.endswith("b"):
            raise OSError(36, "File name too long")
        restore(kept, path, inode)

    monkeypatch.setattr(put_back, "_restore", fails)
    assert put_back.put_back(log.folder) == [f"{folder / 'b'} (File name too long)"]
    (folder / "a").write_text("edited since")
    monkeypatch.undo()
    assert put_back.put_back(log.folder) == []
    assert [(folder / name).read_text() for name in "ab"] == ["edited since", "b"]


def test_a_name_as_long_as_one_can_be_is_put_back(tmp_path: Path) -> None:
    file, log = tmp_path / ("x" * 252 + ".pt"), Log(tmp_path / "log")
    file.write_text("mine")
    log.changes(str(file))
    file.unlink()
    assert put_back.put_back(log.folder) == []
    assert file.read_text() == "mine"
