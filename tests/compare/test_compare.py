"""``harness compare`` as a user calls it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from harness.cli import main
from harness.compare.differences import gap
from tests.test_record import RECORD


def compare(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments])


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., str]:
    """Writes the record with other values, by the paths that lead to them."""

    def write(changes: dict[tuple[Any, ...], Any]) -> str:
        values = json.loads(RECORD.read_text())
        for path, value in changes.items():
            inside = values
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = value
        (tmp_path / "other.json").write_text(json.dumps(values))
        return str(tmp_path / "other.json")

    return write


def test_a_record_and_itself(changed: Callable[..., str]) -> None:
    result = compare(str(RECORD), changed({}))
    assert (result.exit_code, "the same, bit for bit" in result.output) == (0, True)


@pytest.mark.parametrize(
    ("changes", "cause", "update", "what"),
    [
        ({("recipe", "lr"): 3e-5}, "hyper-parameter", 1, "lr"),
        ({("recipe", "seed"): 1}, "random state", 1, "seed"),
        ({("recipe", "shuffle"): False}, "data order", 1, "shuffle"),
        ({("inputs", "data"): "0" * 64}, "another computation", 1, "what data held"),
        ({("curves", "lr", 2): 1e-9}, "hyper-parameter", 3, "lr"),
        ({("curves", "loss", 2): 0.7171768}, "another kernel or precision", 3, "the loss"),
        ({("curves", "loss", 2): 0.9}, "another computation", 3, "the loss"),
        ({("curves", "grad_norm", 0): 99.0}, "another computation", 1, "the gradients' norm"),
    ],
)
def test_records_that_differ(
    changed: Callable[..., str], tmp_path: Path, changes: dict[Any, Any], cause: str, update: int, what: str
) -> None:
    result = compare(str(RECORD), changed(changes), "--json", str(tmp_path / "found.json"))
    assert result.exit_code == 1, result.output
    first = json.loads((tmp_path / "found.json").read_text())["differences"][0]
    assert (first["cause"], first["update"], first["what"]) == (cause, update, what)
    assert f"first, update {update}: {cause}" in result.output


def test_a_setting_explains_the_curves(changed: Callable[..., str], tmp_path: Path) -> None:
    changes = {("recipe", "lr"): 3e-5, ("curves", "loss", 2): 0.9}
    compare(str(RECORD), changed(changes), "--json", str(tmp_path / "found.json"))
    assert [each["what"] for each in json.loads((tmp_path / "found.json").read_text())["differences"]] == ["lr"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.py", "other.py"], "there is no script absent.py"),
        (["train.py"], "give a second script"),
        (["train.py", "--args-b", "'"], "cannot be read as a command line"),
        (["train.py", "--python-b", "no-such-python"], "no Python interpreter no-such-python"),
        (["broken.json", "broken.json"], "run record broken.json"),
    ],
)
def test_what_cannot_be_compared(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    Path("broken.json").write_text("{")
    result = compare(*arguments)
    assert result.exit_code == 2
    assert says in result.output


def test_an_interpreter_needs_the_harness_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')  # nothing that is installed
    python.chmod(0o755)
    result = compare("train.py", "--python-b", str(python))
    assert result.exit_code == 2
    assert "has no harness that compares" in result.output


@pytest.mark.parametrize(
    ("other", "is_rounding"),
    [
        (torch.tensor([1.0, 2.0 + 2**-22]), True),
        (torch.tensor([1.0, 2.001]), False),
        (torch.tensor([1.0, 2.0], dtype=torch.float64), True),
        (torch.tensor([1.0, 2.015], dtype=torch.bfloat16), True),
        (torch.tensor([1.0, torch.nan]), False),
        (torch.tensor([1.0, torch.inf]), False),
    ],
)
def test_sizes_are_held_against_rounding(other: torch.Tensor, is_rounding: bool) -> None:
    found = gap(torch.tensor([1.0, 2.0]), other)
    assert (found.size <= found.rounding) is is_rounding
