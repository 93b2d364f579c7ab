"""Commands that are run together, one after another in one fork: none finds what another left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server import Done, server_of


class Together:
    """Runs tests/leaving.py in one fork, until that ends."""

    def __init__(self, folder: Path, config: pytest.Config) -> None:
        self.folder, self.server = folder, server_of(config)

    def run(self, *things: str, together: str = "leaving") -> tuple[dict[str, Any], Done]:
        how = {"program": "tests.leaving", "together": together}
        done = self.server.run(self.folder, "found.json", *things, **how)  # type: ignore[arg-type]
        return json.loads((self.folder / "found.json").read_text()), done


@pytest.fixture
def together(tmp_path: Path, pytestconfig: pytest.Config) -> Together:
    return Together(tmp_path, pytestconfig)


def test_what_one_leaves_does_not_reach_the_next(together: Together) -> None:
    before, _ = together.run("changes")
    after, done = together.run()
    assert after == before
    assert (done.status, done.stderr) == (0, "")


def test_an_error_is_that_commands_own(together: Together) -> None:
    before, failed = together.run("fails")
    assert failed.status == 1
    assert "no such row" in failed.stderr
    after, done = together.run()
    assert (after, done.stderr) == (before, "")


@pytest.mark.parametrize(("thing", "status"), [("thread", 0), ("ends", 7)])
def test_after_what_cannot_be_put_back_comes_another_fork(thing: str, status: int, together: Together) -> None:
    before, done = together.run(thing)
    assert done.status == status
    after, _ = together.run()
    assert after.pop("process") != before.pop("process")
    assert after.pop("draws")[1] == before.pop("draws")[1], "Python's own generator is seeded anew in each fork"
    assert after == before


def test_those_of_another_name_and_of_none_have_their_own(together: Together) -> None:
    processes = [together.run(together=name)[0]["process"] for name in ("one", "one", "other", "", "")]
    assert len(set(processes)) == 4
    assert processes[0] == processes[1]
