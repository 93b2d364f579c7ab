"""``harness compare`` on scripts and edited ones: the first difference, its update, its cause; none where none is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compare.forked import FIRST_SIDES, entries
from tests.rings import first_of_each
from tests.server import server_of

ENTRIES = entries()


def more(name: str) -> dict[str, Any]:
    """What the manifest says of a pair for these tests."""
    return ENTRIES[name].model_extra or {}


QUICK = ("plain-label-smoothing", "plain-one-more-random-number")
GUARDS = first_of_each(
    sorted(ENTRIES, key=lambda name: (name not in QUICK, not name.startswith("plain"))),
    kind=lambda name: str(more(name).get("cause")),
)
"""One pair for each cause, and one without a difference; the others are nightly."""


def found_in(name: str, tmp_path: Path, config: pytest.Config) -> dict[str, Any]:
    server = server_of(config)
    done = server.run(tmp_path, name, program="tests.compare.forked", environment={FIRST_SIDES: str(server.folder)})
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.status == 0, done.stderr
    return next(line for line in lines if line["name"] == name)


def check(name: str, found: dict[str, Any]) -> None:
    assert "error" not in found, found
    if ENTRIES[name].wrong is None:
        assert (found["differences"], found["updates"] > 0) == ([], True)
        return
    first = found["differences"][0]
    cause = more(name)["cause"]
    causes = [cause] if isinstance(cause, str) else cause
    assert first["cause"] in causes, found
    assert first["update"] == more(name)["update"], found


def marks(name: str) -> tuple[pytest.MarkDecorator, ...]:
    if name in QUICK:
        return ()
    return (pytest.mark.slow if name in GUARDS else pytest.mark.nightly,)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in ENTRIES])
def test_corpus(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    check(name, found_in(name, tmp_path, pytestconfig))
