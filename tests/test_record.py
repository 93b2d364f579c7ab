"""What is kept in files stays what it is, byte for byte: read by this version and written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.documented_run.baseline.review import stored_files
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.matrix import Matrix
from harness.documented_run.record import RunRecord
from harness.errors import CannotTry
from harness.findings import CheckResult, Finding

BASELINES = Path(__file__).parent.parent / "baselines"
RECORD = Path(__file__).parent / "run_of_schema_1.json"
"""With a failing comparison, findings, checks of every outcome, differences, and numbers that JSON lacks."""


def test_run_record(tmp_path: Path) -> None:
    record = RunRecord.read(RECORD)
    record.write(tmp_path / "run.json")
    older = '"schema": 1,'  # it did not say its kind
    assert (tmp_path / "run.json").read_text() == RECORD.read_text().replace(older, f'{older}\n  "kind": "run",', 1)
    assert record.comparison[0].findings[0].check == "baseline::exact"


@pytest.mark.parametrize("path", [*stored_files(BASELINES)], ids=lambda path: path.stem)
def test_baselines(path: Path, tmp_path: Path) -> None:
    Baseline.read(path).write(tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_matrix(tmp_path: Path) -> None:
    Matrix.read(BASELINES / "matrix.json").write(tmp_path / "matrix.json")
    assert (tmp_path / "matrix.json").read_bytes() == (BASELINES / "matrix.json").read_bytes()


def test_a_result_is_kept_without_its_findings() -> None:
    """They have a list of their own."""
    record = RunRecord.read(RECORD)
    before = record.model_dump_json()
    record.checks[:] = [CheckResult(**vars(each), findings=(Finding("e", "o", "h"),)) for each in record.checks]
    assert record.model_dump_json() == before


@pytest.mark.parametrize("key", ["findings", "checks", "comparison", "differences"])
def test_an_unknown_key_is_refused(key: str, tmp_path: Path) -> None:
    text = RECORD.read_text()
    place = text.index("{", text.index(f'"{key}": ['))
    (tmp_path / "run.json").write_text(f'{text[:place]}{{"surprise": 1, {text[place + 1 :]}')
    with pytest.raises(CannotTry, match=rf"run record .*: {key}\.0\.surprise: Unexpected keyword argument"):
        RunRecord.read(tmp_path)
