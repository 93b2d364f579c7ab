"""Scripts of several processes, with a bug that matters only there and without: DistributedDataParallel, all_reduce by
hand, Accelerate, Trainer, Lightning, ``no_sync``, uneven tokens; :mod:`tests.written_apart`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.written_apart import must_be_complete, must_be_named, parameters

FOLDER = Path(__file__).parent
GUARDS = ()  # each takes a real launcher: the examples of tests/checks/ranks guard every change


@pytest.mark.parametrize("script", list(parameters(FOLDER, GUARDS)))
def test_what_is_wrong_is_named_and_nothing_else(script: dict[str, Any], pytestconfig: pytest.Config) -> None:
    must_be_named(FOLDER, script, pytestconfig)


def test_there_are_as_many_as_promised() -> None:
    must_be_complete(FOLDER, bugs=22, right=28)
