"""Which checks found something, passed or did not apply, against the record: what no longer looks is seen here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import catalogue
from scripts import verdicts
from tests.programs import PARTS, versions_of
from tests.server import Verdict, server_of


def probes() -> Iterator[Any]:
    """Those of the latest folder guard every change, all others are nightly."""
    there = verdicts.probes()
    for script in there:
        latest = script.parts[-3] == there[-1].parts[-3]
        marks = [pytest.mark.slow if latest else pytest.mark.nightly]
        yield pytest.param(script, marks=marks, id=f"{script.parts[-3]}-{script.stem}")


@pytest.mark.parametrize("script", list(probes()))
def test_probes_of_what_was_once_judged_wrongly(script: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    name = verdicts.digest_of(script)
    if name not in verdicts.recorded()[1]:
        pytest.skip("it is not recorded: it needs a checkpoint, draws without a seed, or is newer")
    verdict = verdicts.watched(server_of(pytestconfig), script, tmp_path)
    assert verdict.not_looked_at == [], "a check itself crashed"
    assert verdicts.differences(name, verdict) == {}, "python -m scripts.verdicts probes records them anew"


def test_a_check_that_no_longer_looks_is_named() -> None:
    checks, programs = verdicts.recorded()
    name, letters = next(iter(programs.items()))
    held = [check for check, letter in zip(checks, letters, strict=True) if letter == "h"]
    found = [{"check": check} for check, letter in zip(checks, letters, strict=True) if letter == "f"]
    assert verdicts.differences(name, Verdict(1, found, [], [], held, None)) == {}
    lost = verdicts.differences(name, Verdict(1, found, [], [], held[1:], None))
    assert lost == {held[0]: "passed, now did not apply"}


def test_the_record_is_of_programs_that_are_there_and_of_most_checks() -> None:
    checks, programs = verdicts.recorded()
    names = {verdicts.name_of(version) for part in PARTS for version in versions_of(part)}
    assert {name for name in programs if not name.startswith(verdicts.PROBES)} <= names
    assert len(set(checks) & set(catalogue.checks())) > 0.9 * len(catalogue.checks())
