"""Saves of five libraries, written as their documents say, at every file operation; what others do is in docs/faults.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server import server_of

LIBRARIES = Path(__file__).parent / "libraries"

SURVIVES = {
    "ignited.py": True,
    "lightned.py": False,
    "trainer.py": False,
    "accelerated.py": False,
    "reinforced.py": False,
}
"""Whether each moment of a save is survived, with the versions of constraints.txt."""


def test_every_library_is_listed() -> None:
    assert {file.name for file in LIBRARIES.glob("*.py")} == SURVIVES.keys()
