"""Copies of a process that has imported libraries: how they end, and what is left where that process is gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import CannotTry
from harness.starts.warm import Request, Warm, is_library


@contextmanager
def template(code: str) -> Iterator[Warm]:
    """A process that stands for the template."""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Warm(process)
        process.kill()


def request(number: int) -> Request:
    return Request(number, "orders.json", str(Path.cwd()), "said")


def test_a_copy_ends_with_its_status() -> None:
    with template("input(); print(7, 3, flush=True); input()") as copies:
        assert copies.start(request(7)) == 3


def test_nobody_waits_for_a_template_that_has_ended() -> None:
    with template("input()") as copies:
        for number in (1, 2):  # it ends while the first one is waited for; the second one is not begun
            with pytest.raises(CannotTry, match="has ended"):
                copies.start(request(number))


def test_a_copy_that_takes_too_long_is_killed() -> None:
    answers = (
        "import json; first = json.loads(input()); kill = json.loads(input()); print(kill['kill'], -9, flush=True)"
    )
    with template(f"{answers}; input()") as copies:
        assert copies.start(request(4), timeout=0.01) is None


@pytest.mark.parametrize(
    ("name", "known"), [("numpy", True), ("torch.nn", True), ("torch.cuda", False), ("ray.tune", False)]
)
def test_what_is_imported_before(name: str, known: bool) -> None:
    assert is_library(name) == known
