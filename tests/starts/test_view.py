"""Private views of the file system: what they are made of, and what is told of what was written."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness.starts import planned, upper, view
from harness.starts.levels import why_not
from harness.starts.planned import Mount


def made(tmp_path: Path, folder: Path, through: Path | None = None) -> tuple[view.Plan, Path]:
    if (why := why_not("overlay")) is not None:
        pytest.skip(why)
    home = tmp_path / "own"
    home.mkdir()
    passed = [str(home), *([str(through)] if through is not None else [])]
    plan = planned.plan(f"harness-test-{os.getpid()}-{tmp_path.name}", ["/var/tmp", "/tmp"], passed, [str(folder)])
    plan.write(home)
    return plan, home


def run(home: Path, folder: Path, text: str) -> str:
    """What a shell prints that works in the folder, in a view."""
    words = [sys.executable, "-I", "-S", view.__file__, str(home), "--", "sh", "-c", text]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_what_is_written_is_known_and_the_user_s_stays(tmp_path: Path) -> None:
    folder, cache = tmp_path / "folder", tmp_path / "cache"
    folder.mkdir()
    cache.mkdir()
    for name in "ab":
        (folder / name).write_text(name)
    plan, home = made(tmp_path, folder, cache)
    try:
        told = run(home, folder, f"pwd; echo more >> a; rm b; mkdir d; echo x > d/new; echo kept > {cache}/file; ls")
        assert told.split() == [str(folder), "a", "d"]
        assert run(home, folder, "cat a d/new").split() == ["amore", "x"], "the second process sees it too"
        found = {(change.kind, change.path) for change in upper.changes(plan) if change.path.startswith(f"{folder}/")}
        expected = {("file", "a"), ("gone", "b"), ("folder", "d"), ("file", "d/new")}
        assert found == {(kind, f"{folder}/{name}") for kind, name in expected}
        assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
        assert (folder / "a").read_text() == "a"
        assert (cache / "file").read_text() == "kept\n"
    finally:
        view.remove(plan)
    assert not os.path.exists(os.path.dirname(plan.root))


def test_what_is_hidden_and_put_is_so_from_the_beginning(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "last-1.pt", "last-2.pt"):
        (folder / name).write_text(name)
    plan, home = made(tmp_path, folder)
    try:
        (home / "holds").write_text("another")
        plan.hidden, plan.put = [f"{folder}/last-*"], {f"{folder}/a": str(home / "holds")}
        plan.write(home)
        assert run(home, folder, "ls; cat a").split() == ["a", "another"]
        run(home, folder, "echo x > last-1.pt")
        assert run(home, folder, "ls").split() == ["a", "last-1.pt"], "once, and not in each process"
    finally:
        view.remove(plan)
    assert (folder / "a").read_text() == "a"


def test_processes_that_enter_at_once_are_in_one_view(tmp_path: Path) -> None:
    """Two mounts of one upper folder do not know of each other: a folder that one makes is stale for the other."""
    folder = tmp_path / "folder"
    folder.mkdir()
    plan, home = made(tmp_path, folder)
    words = [
        sys.executable,
        "-I",
        "-S",
        view.__file__,
        str(home),
        "--",
        "sh",
        "-c",
        "readlink /proc/self/ns/mnt; read x",
    ]
    with (home / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        both = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        try:
            while not all(str(home / "lock") in opened(process.pid) for process in both):
                time.sleep(0.01)
            fcntl.flock(lock, fcntl.LOCK_UN)
            namespaces = {process.stdout.readline() for process in both if process.stdout is not None}
            assert len(namespaces) == 1
            assert os.readlink("/proc/self/ns/mnt") not in {namespace.strip() for namespace in namespaces}
        finally:
            for process in both:
                process.communicate("\n")
            view.remove(plan)


def opened(pid: int) -> set[str]:
    """The files that a process has open."""
    with suppress(OSError):
        return {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
    return set()


def test_a_place_in_memory_keeps_nothing() -> None:
    mounted = [Mount("/", "ext4", False), Mount("/dev/shm", "tmpfs", False), Mount("/home", "nfs4", False)]
    assert planned.bases(["/dev/shm/x", "/home/ada", "/var/tmp/x"], mounted) == ["/var/tmp/x"]
    assert planned.kind_at("/home/ada", mounted) == "nfs4"


def test_mounts_are_read_with_odd_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = r"30 25 0:27 / /mnt/my\040data rw,relatime shared:1 - ext4 /dev/sda rw"
    read_only = r"31 25 0:28 / /usr ro,relatime - squashfs /dev/sdb rw"
    monkeypatch.setattr(Path, "read_text", lambda self: f"{line}\n{read_only}\n")
    assert planned.mounts() == [Mount("/usr", "squashfs", True), Mount("/mnt/my data", "ext4", False)]


def test_a_path_in_options_is_escaped() -> None:
    assert view._escaped("/a:b,c\\d") == "/a\\:b\\,c\\\\d"
