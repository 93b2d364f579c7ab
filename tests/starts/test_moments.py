"""Folders as a kill at a file operation leaves them: taken, cut within a write, and built again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.starts import moments
from harness.starts.journal import IN_MEMORY, Journal, Moved, Operation, Saved, Writer
from harness.starts.mirror import Mirror
from harness.starts.moments import Moment, Renamed, Store, Watcher, build, within
from harness.starts.operations import telling
from harness.starts.workdir import files_below

Change = Callable[[Path], object]


class Folder:
    """A folder of a user with two files, its mirror, and what is kept of it."""

    def __init__(self, root: Path) -> None:
        self.real = root / "work"
        self.real.mkdir()
        (self.real / "data.txt").write_text("rows")
        (self.real / "log.txt").write_text("begun\n")
        self.mirror = self.another(root / "mirror")
        self.store = Store(root / "store")
        self.watcher = Watcher(self.mirror, self.store)
        self.at = Path(self.mirror.of(str(self.real)))

    def another(self, root: Path) -> Mirror:
        mirror = Mirror(root)
        mirror.add(str(self.real))
        return mirror

    def taken(self, number: int, kind: str) -> Moment:
        return self.watcher.moment(number, 3, Operation(number, 3, kind, "x", None))

    def between(self, kind: str, change: Change) -> list[dict[str, bytes]]:
        """What lies in the folder at each moment within an operation."""
        before = self.taken(1, kind)
        change(self.at)
        after = self.taken(2, "open")
        return [self.built(each, number) for number, each in enumerate(within(before, after, self.store))]

    def built(self, moment: Moment, number: int) -> dict[str, bytes]:
        mirror = self.another(self.real.parent / f"built-{number}")
        build(moment, self.store, mirror)
        at = Path(mirror.of(str(self.real)))
        return {str(path.relative_to(at)): path.read_bytes() for path in at.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path.resolve())


BESIDE = {"data.txt": b"rows", "log.txt": b"begun\n"}


def test_a_moment_is_built_again_as_it_was(folder: Folder) -> None:
    (folder.at / "out").mkdir()
    (folder.at / "out" / "kept.pt").write_bytes(b"12345678")
    os.symlink("kept.pt", folder.at / "out" / "latest")
    (folder.at / "log.txt").unlink()
    os.utime(folder.at / "out" / "kept.pt", ns=(5_000_000_000, 5_000_000_000))
    moment = folder.taken(1, "open")
    mirror = folder.another(folder.real.parent / "built")
    build(moment, folder.store, mirror)
    at = Path(mirror.of(str(folder.real)))
    assert sorted(os.listdir(at)) == ["data.txt", "out"]
    assert os.readlink(at / "out" / "latest") == "kept.pt"
    assert (at / "out" / "latest").read_bytes() == b"12345678"
    assert (at / "out" / "kept.pt").stat().st_mtime == 5
    assert (folder.real / "log.txt").exists(), "the user's own is as it was"


@pytest.mark.parametrize(
    ("kind", "change", "torn"),
    [
        ("open", lambda at: (at / "new.pt").write_bytes(b"1234"), [("new.pt", b""), ("new.pt", b"12")]),
        ("empty", lambda at: (at / "data.txt").write_bytes(b"1234"), [("data.txt", b""), ("data.txt", b"12")]),
        ("save", lambda at: (at / "data.txt").write_bytes(b"1234"), [("data.txt", b""), ("data.txt", b"12")]),
        ("open", lambda at: (at / "log.txt").write_bytes(b"begun\n1234"), [("log.txt", b"begun\n12")]),
        ("open", lambda at: (at / "data.txt").write_bytes(b"1234"), [("data.txt", b"12ws")]),
    ],
    ids=["a new file", "one that is emptied", "one that a library writes", "one that is appended to", "in place"],
)
def test_a_write_is_cut_in_its_middle(folder: Folder, kind: str, change: Change, torn: list[tuple[str, bytes]]) -> None:
    assert folder.between(kind, change) == [BESIDE | {name: part} for name, part in torn]


def test_a_rename_is_not_cut(folder: Folder) -> None:
    (folder.at / "new.tmp").write_bytes(b"1234")
    assert folder.between("rename", lambda at: os.replace(at / "new.tmp", at / "data.txt")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="nobody tells of a library's own renames elsewhere")
def test_what_a_library_renames_by_itself_is_cut_under_its_first_name(folder: Folder) -> None:
    def writes(at: Path) -> None:
        (at / ".tmp1").write_bytes(b"1234")
        os.replace(at / ".tmp1", at / "data.txt")

    assert folder.between("save", writes) == [BESIDE | {".tmp1": b""}, BESIDE | {".tmp1": b"12"}]


def test_moments_are_alike_where_the_bytes_are(folder: Folder) -> None:
    first = folder.taken(1, "open")
    (folder.at / "new.pt").write_bytes(b"1234")
    second = folder.taken(2, "open")
    os.utime(folder.at / "new.pt", ns=(1, 1))
    assert first.holds != second.holds == folder.taken(3, "open").holds


def test_a_rewrite_in_the_same_moment_is_seen(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of change of a file is coarse: what was written just now is looked at again."""
    monkeypatch.setattr(moments, "TICK", 600 * 10**9)  # between the two, a busy machine does something else
    (folder.at / "new.pt").write_bytes(b"1234")
    found = (folder.at / "new.pt").stat()
    first = folder.taken(1, "open")
    (folder.at / "new.pt").write_bytes(b"4321")
    os.utime(folder.at / "new.pt", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert folder.taken(2, "open").holds != first.holds


def test_renames_are_told_once(tmp_path: Path) -> None:
    renamed = Renamed()
    renamed.watch(str(tmp_path))
    (tmp_path / "a").touch()
    (tmp_path / "a").rename(tmp_path / "b")
    expected = [(str(tmp_path / "a"), str(tmp_path / "b"))] if sys.platform == "linux" else []
    assert renamed.read() == expected
    assert renamed.read() == []


@pytest.mark.parametrize("mode", ["w", "wb", "a", "ab", "r+", "w+b", "x"])
def test_a_file_that_tells_is_written_as_any(mode: str, tmp_path: Path) -> None:
    """Before each write that reaches the system, a flush among them."""
    path = tmp_path / ("new.txt" if mode == "x" else "old.txt")
    if mode != "x":
        path.write_text("0123456789")
    there = list[bytes]()
    kind: type = bytes if "b" in mode else str
    with telling(open(path, mode), lambda: there.append(path.read_bytes())) as file:
        for text in ("ab\n", "cd\n"):
            file.write(text.encode() if kind is bytes else text)
            file.flush()
        assert (file.mode, file.name) == (mode if kind is str else file.mode, str(path))
        assert file.fileno() > 0
    begun = b"0123456789" if mode[0] in "ar" else b""
    ended = {"a": begun + b"ab\ncd\n", "r": b"ab\ncd\n6789"}.get(mode[0], b"ab\ncd\n")
    assert path.read_bytes() == ended
    assert there == [begun, {"a": begun + b"ab\n", "r": b"ab\n3456789"}.get(mode[0], b"ab\n")]


def test_files_are_there_by_each_path_that_leads_to_them(tmp_path: Path) -> None:
    at = tmp_path / "work"
    (at / "step-1").mkdir(parents=True)
    (at / "step-1" / "w.pt").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").touch()
    (at / "latest").symlink_to("step-1")
    (at / "step-1" / "circle").symlink_to(at)
    (at / "out").symlink_to(tmp_path / "elsewhere")
    assert sorted(files_below(at)) == ["latest/w.pt", "step-1/w.pt"]


def saved(number: int, path: str, **changes: object) -> Saved:
    given = {"number": number, "at": 2, "pending": 0, "path": path, "values": {}, "weights": False, "where": None}
    return Saved(**(given | changes))  # type: ignore[arg-type]


def journal(path: Path, events: list[Saved | Moved | Operation], until: float | None = None) -> Journal:
    with path.open("w") as file:
        for each in events:
            Writer(file).write(each)
    return Journal.read(path, until=until)


BUFFER = saved(1, IN_MEMORY, values={"w": "1"}, weights=True, done=True)


def test_what_was_saved_in_memory_is_what_the_next_file_holds(tmp_path: Path) -> None:
    opened = saved(2, "run.pt", opened=True)
    found = journal(tmp_path / "j", [BUFFER, opened, saved(2, "run.pt", opened=True, done=True)])
    assert [(each.path, each.weights, each.done) for each in found.saves] == [
        (IN_MEMORY, True, True),
        ("run.pt", True, True),
    ]
    later = journal(tmp_path / "j", [BUFFER, saved(2, "log.txt", at=3, opened=True)])
    assert not later.saves[1].weights, "after another update"


def test_what_was_saved_in_memory_may_be_written_elsewhere_and_moved(tmp_path: Path) -> None:
    (found,) = journal(tmp_path / "j", [BUFFER, Moved("/tmp/x", "run.ckpt")]).saves
    assert found.path == "run.ckpt"


def test_a_rename_moves_what_lies_there_and_not_what_lay_there_before(tmp_path: Path) -> None:
    one, other = saved(1, "new/w.pt", done=True), saved(2, "new/w.pt", at=4, done=True)
    found = journal(tmp_path / "j", [one, other, Moved("new", "at-4")])
    assert [each.path for each in found.saves] == ["new/w.pt", "at-4/w.pt"]


@pytest.mark.parametrize(("until", "numbers", "saves"), [(2, [1], 1), (2.5, [1, 2], 1), (None, [1, 2, 3], 2)])
def test_a_journal_as_far_as_a_kill_let_it_come(
    tmp_path: Path, until: float | None, numbers: list[int], saves: int
) -> None:
    events = [Operation(number, 2, "open", "x", None) for number in (1, 2, 3)]
    one, other = saved(1, "a", done=True), saved(2, "b", done=True)
    found = journal(tmp_path / "j", [events[0], one, events[1], other, events[2]], until)
    assert [each.number for each in found.operations] == numbers
    assert len(found.saves) == saves
