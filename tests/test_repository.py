"""What the repository says of itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in names]


def test_ci_finds_the_test_command_in_the_readme() -> None:
    (pattern,) = re.findall(r"grep -m 1 -E '(.*)' README\.md", (ROOT / ".ci" / "run").read_text())
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if re.search(pattern, line)]
    assert len(lines) == 1
    assert "-c constraints.txt" in lines[0]


def test_no_placeholder_is_left() -> None:
    mark = "@" * 2
    for path in _tracked():
        if path.suffix != ".safetensors":
            assert mark not in path.read_text(encoding="utf-8"), path


def test_no_gpu_test_of_ours_lacks_the_fixture_benchmark() -> None:
    """The command for GPU runners, as far as collecting; where the fixture is missing, the guard refuses."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "--benchmark-only", "--collect-only", "-q", "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "test_the_documented_run[bert-base]" in done.stdout


def test_built_in_checkpoint_is_small() -> None:
    folder = ROOT / "harness" / "assets" / "tiny-bert"
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 4_000_000
