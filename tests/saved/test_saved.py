"""What is trained and what is saved (:mod:`tests.written_apart`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.written_apart import must_be_complete, must_be_named, parameters

FOLDER = Path(__file__).parent
GUARDS = ("bugs/spectra_classifier.py", "right/pollen_swa.py")


@pytest.mark.parametrize("script", list(parameters(FOLDER, GUARDS)))
def test_what_is_wrong_is_named_and_nothing_else(script: dict[str, Any], pytestconfig: pytest.Config) -> None:
    must_be_named(FOLDER, script, pytestconfig)


def test_there_are_as_many_as_promised() -> None:
    must_be_complete(FOLDER, bugs=20, right=14)
