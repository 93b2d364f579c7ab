"""Work that is spread: what needs no Ray. tests/test_many_machines.py has the rest."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from harness import spread as spreading
from harness.cli import main
from harness.errors import CannotTry
from harness.fingerprint import library_versions
from harness.spread import spread

EXAMPLE = Path(__file__).parent / "checks" / "gradients" / "not-cleared" / "good.py"


def test_here_each_item_is_worked_on_when_it_is_asked_for() -> None:
    told: list[str] = []

    def items() -> Iterator[int]:
        for item in (1, 2):
            told.append(f"taken {item}")
            yield item

    def work(item: int) -> int:
        told.append(f"worked on {item}")
        return 10 * item

    found = spread(work, items())
    assert told == []
    assert next(found) == (1, 10)
    assert told == ["taken 1", "worked on 1"]
    assert list(found) == [(2, 20)]


def test_without_ray_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.harness]\nscripts = ['{EXAMPLE}']\n")
    result = CliRunner().invoke(main, ["check", "--on", "ray"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.endswith('install it with: pip install "full-training-harness[ray]"')


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:{port}", "ConnectionRefusedError"),
        ("nonsense", "Invalid address format: nonsense"),
        ("host:port", "invalid literal for int"),
    ],
)
def test_a_cluster_that_is_not_there(address: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs the extra ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("RAY_ADDRESS", address.format(port=port))
    with pytest.raises(CannotTry, match=rf"no Ray cluster can be reached at RAY_ADDRESS=.*{says}"):
        list(spread(abs, [1], "ray"))


def test_one_script_is_not_spread() -> None:
    result = CliRunner().invoke(main, ["check", "--on", "ray", "train.py"])
    assert result.exit_code == 2
    assert "--on ray runs the scripts listed in [tool.harness]" in result.stderr


def test_a_copy_has_all_that_a_script_may_read(tmp_path: Path) -> None:
    """What .gitignore names too: data often is."""
    folder = tmp_path / "work"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "rows.bin").write_bytes(b"\0\1")
    (folder / ".gitignore").write_text("data\n")
    (folder / "run.sh").touch(mode=0o755)
    (folder / "link").symlink_to("/dev/null")
    for name in (".git", "__pycache__"):
        (folder / name).mkdir()
    packed = spreading._packed(folder)
    with spreading._unpacked(str(folder), packed):
        copy = Path.cwd()
        assert (copy.name, copy != folder) == ("work", True)
        assert sorted(path.name for path in copy.iterdir()) == [".gitignore", "data", "link", "run.sh"]
        assert (copy / "data" / "rows.bin").read_bytes() == b"\0\1"
        assert os.access("run.sh", os.X_OK)
        assert os.readlink("link") == "/dev/null"
    assert not copy.exists()
    with spreading._unpacked(str(folder), None):
        assert Path.cwd() == folder


def test_a_folder_that_is_too_large_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "LARGEST", 0)
    (tmp_path / "data").write_text("much")
    with pytest.raises(CannotTry, match="holds more than 0 GiB"):
        spreading._packed(tmp_path)


def test_a_node_with_other_versions_says_which() -> None:
    here = library_versions()
    spreading._check_versions(here)
    with pytest.raises(CannotTry, match=r"^the installed versions differ .*: numpy .*, expected 0\.1; install those$"):
        spreading._check_versions(here | {"numpy": "0.1"})


@pytest.mark.parametrize(
    ("nodes", "room"),
    [
        ([(True, {"CPU": 4.0})], True),
        ([(True, {"CPU": 1.0}), (True, {"CPU": 3.0})], False),
        ([(False, {"CPU": 4.0}), (True, {})], False),
    ],
)
def test_nobody_waits_for_a_node_that_is_not_there(nodes: list[tuple[bool, dict[str, float]]], room: bool) -> None:
    ray = SimpleNamespace(nodes=lambda: [{"Alive": alive, "Resources": has} for alive, has in nodes])
    if room:
        spreading._check_room(ray, {"CPU": 4, "GPU": 0})
    else:
        with pytest.raises(CannotTry, match="no node of the Ray cluster has 4 CPUs, which one task needs"):
            spreading._check_room(ray, {"CPU": 4, "GPU": 0})
