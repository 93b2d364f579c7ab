"""The isolated working directory."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness.put_back import CannotKeep
from harness.starts import mirror as mirrors
from harness.starts.mirror import Mirror
from tests.starts.trees import listing, tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with what lies beside it."""
    tree(tmp_path / "home" / "beside")
    return tree(tmp_path / "home" / "project")


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "root" / "at")


def own(mirror: Mirror, path: Path | str, *, follow: bool = True) -> Path:
    return Path(mirror.own(str(path), follow=follow))


def test_what_is_small_is_copied_and_what_lies_beside_is_linked(project: Path, mirror: Mirror) -> None:
    mirror.add(str(project))
    there = Path(mirror.of(str(project)))
    assert listing(there).keys() == {mirror.of(path) for path in listing(project)}
    assert not any(path.is_symlink() for path in there.rglob("*") if path.name != "link")
    assert (there / "a").stat().st_mtime_ns == (project / "a").stat().st_mtime_ns
    assert os.readlink(there.parent / "beside") == str(project.parent / "beside")
    assert (there / ".." / "beside" / "d" / "e").read_text() == "e"


def test_what_is_large_is_linked_and_copied_before_it_is_changed(
    project: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "SMALL", 0)
    mirror.add(str(project))
    here = Path(mirror.of(str(project / "a")))
    assert here.is_symlink()
    assert own(mirror, here) == here
    here.write_text("another")
    assert (project / "a").read_text() == "a"
    assert [path for path, _ in mirror.written()] == [str(project / "a")]
    assert list(mirror.changed()) == []


def test_a_linked_folder_becomes_its_own_level_by_level(project: Path, mirror: Mirror) -> None:
    mirror.add(str(project))
    before = listing(project.parent)
    file = Path(mirror.of(str(project))) / ".." / "beside" / "d" / "e"
    at = own(mirror, file)
    at.write_text("another")
    assert at == Path(mirror.of(str(project.parent / "beside" / "d" / "e")))
    assert file.read_text() == "another"
    assert (at.parent / "f").is_symlink(), "what is beside it is not copied"
    assert listing(project.parent) == before


def test_links_lead_into_the_mirror_where_they_led_into_the_folder(project: Path, mirror: Mirror) -> None:
    (project / "latest").symlink_to(project / "d")
    (project / "away").symlink_to(project.parent / "beside")
    mirror.add(str(project))
    there = Path(mirror.of(str(project)))
    own(mirror, there / "latest" / "e").write_text("another")
    assert (there / "d" / "e").read_text() == "another"
    own(mirror, there / "away" / "a").write_text("another")
    assert (there / "away" / "a").read_text() == "another"
    assert (project.parent / "beside" / "a").read_text() == "a"


def test_a_link_itself_is_removed_and_not_what_it_leads_to(
    project: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "SMALL", 0)
    mirror.add(str(project))
    here = own(mirror, mirror.of(str(project / "a")), follow=False)
    here.unlink()
    assert (project / "a").read_text() == "a"


def test_a_path_outside_stays_where_it_is(project: Path, mirror: Mirror) -> None:
    mirror.add(str(project))
    assert own(mirror, project / "link") == project / "a"
    assert not mirror.holds(str(project / "a"))


def test_files_of_a_crowded_folder_are_linked_one_by_one(project: Path, mirror: Mirror) -> None:
    (project / "images").mkdir()
    for number in range(50):
        (project / "images" / f"{number}").touch()
    mirror._budget.entries = 10
    mirror.add(str(project))
    images = Path(mirror.of(str(project / "images")))
    assert not images.is_symlink(), "os.walk and rglob go into no link"
    assert len([path for path in images.rglob("*") if path.is_file()]) == 50
    (images / "0").unlink()
    assert (project / "images" / "0").exists()


def test_too_many_files_are_refused(project: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.starts.mirror.LINKS", 2)
    mirror._budget.entries = 0
    with pytest.raises(CannotKeep, match=r"more than 2 files, too many for a mirror; harness doctor shows"):
        mirror.add(str(project))


def test_a_repository_is_the_mirrors_own(project: Path, mirror: Mirror) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref")
    mirror.add(str(project))
    Path(mirror.of(str(project / ".git" / "HEAD"))).write_text("another")
    assert (project / ".git" / "HEAD").read_text() == "ref"


def test_folders_that_are_no_scripts_data_are_linked(project: Path, mirror: Mirror) -> None:
    (project / ".venv").mkdir()
    mirror.add(str(project))
    assert Path(mirror.of(str(project / ".venv"))).is_symlink()


def test_what_is_newest_is_newest_in_the_mirror(project: Path, mirror: Mirror) -> None:
    for name in ("step9", "step10"):
        (project / name).write_text(name)
        time.sleep(0.01)
    os.utime(project / "d", (1, 1))
    mirror.add(str(project))
    there = Path(mirror.of(str(project)))
    assert max(there.glob("step*"), key=lambda path: path.stat().st_ctime_ns).name == "step10"
    assert (there / "d").stat().st_mtime == 1


def test_files_outside_that_a_script_names_are_compared(tmp_path: Path, mirror: Mirror) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "model.pt").write_text("mine")
    mirror.look_at([str(outside)])
    assert list(mirror.changed()) == []
    (outside / "model.pt").chmod(0o600)
    (outside / "new").touch()
    assert sorted(mirror.changed()) == [(str(outside / "model.pt"), True), (str(outside / "new"), True)]


def test_what_is_copied_in_all_is_limited(project: Path, mirror: Mirror) -> None:
    mirror._budget.bytes = 2
    mirror.add(str(project))
    there = Path(mirror.of(str(project)))
    linked = [path.name for path in there.rglob("*") if path.is_symlink()]
    assert sorted(linked) == ["b2", "c", "e", "link"], "what is near is copied first"


def test_read_only_folders_are_so_in_the_mirror(project: Path, mirror: Mirror) -> None:
    (project / "d").chmod(0o555)
    mirror.add(str(project))
    assert Path(mirror.of(str(project / "d"))).stat().st_mode & 0o777 == 0o555
    mirror.remove()
    assert not Path(mirror.of(str(project))).exists()
    (project / "d").chmod(0o755)


def test_two_folders_within_one_another(project: Path, mirror: Mirror) -> None:
    mirror.add(str(project / "d"))
    mirror.add(str(project))
    there = Path(mirror.of(str(project)))
    assert not (there / "d").is_symlink()
    assert (there / "d" / "e").read_text() == "e"
    assert not (there / "a").is_symlink()


def test_changes_of_real_files_are_noticed(project: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "SMALL", 1)
    (project / "large").write_text("large")
    mirror.add(str(project))
    (project / "a").write_text("another")
    (project / "large").write_text("another")
    assert dict(mirror.changed()) == {str(project / "a"): False, str(project / "large"): True}


def test_what_the_command_prints_to_is_not_what_the_script_changed(
    project: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.add(str(project))
    (project / "a").write_text("printed")
    assert [path for path, _ in mirror.changed()] == [str(project / "a")]
    monkeypatch.setattr(mirrors, "_inode", lambda number: (project / "a").stat().st_ino)
    assert list(mirror.changed()) == []


def test_texts_have_the_users_paths(project: Path, mirror: Mirror) -> None:
    mirror.add(str(project))
    assert mirror.real(f"in {mirror.of(str(project / 'a'))}:3") == f"in {project / 'a'}:3"
