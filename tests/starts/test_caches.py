"""Caches that a script makes beside its data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.starts import caches
from harness.starts.isolated import isolated
from tests.starts.trees import listing


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A dataset as save_to_disk leaves it, in a project to work in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(caches, "SOON_GONE", ("/nowhere",))
    folder = tmp_path / "home" / "rows"
    folder.mkdir(parents=True)
    (folder / "data.arrow").write_text("rows")
    (folder / "state.json").write_text('{"_fingerprint": "1"}')
    (folder.parent / "train.py").write_text("")
    monkeypatch.chdir(folder.parent)
    before = listing(folder).keys()
    yield folder
    assert listing(folder).keys() == before


def made(name: str = "cache-1.arrow") -> list[str]:
    """The caches that a script finds which makes one."""
    with isolated("train.py") as place:
        found = sorted(each.name for each in Path("rows").glob("cache-*"))
        Path("rows", name).write_text("tokens")
        place.close()
    return found


def test_a_cache_is_found_by_the_next_run(rows: Path) -> None:
    with isolated("train.py") as place:
        Path("rows", "cache-1.arrow").write_text("tokens")
        Path("rows", "other.arrow").write_text("tokens")
        found = place.close()
    assert found.cached == [str(rows / "cache-1.arrow")]
    assert "  kept for the next run: 1 cache of datasets next to the data" in [*found.lines()]
    assert made() == ["cache-1.arrow"]


def test_a_cache_of_other_data_is_not(rows: Path) -> None:
    made()
    (rows / "state.json").write_text('{"_fingerprint": "2"}')
    assert made() == []


def test_of_folders_that_are_soon_gone_nothing_is_kept(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "SOON_GONE", (str(rows.parent),))
    made()
    assert made() == []


def test_the_oldest_go_first(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setattr(caches, "LARGEST", 0)
    made("cache-2.arrow")
    assert made("cache-3.arrow") == []
