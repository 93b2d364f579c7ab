"""What other releases change: scripts/upgrade.py. The whole of it is run by hand, and by a workflow each week."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.documented_run.matrix import Cell, Matrix
from harness.errors import CannotTry
from scripts.upgrade import ROOT, contract, differing, newest, report

RECORDED = Matrix.read(ROOT / "baselines" / "matrix.json")


def tried(**cells: Cell) -> Matrix:
    """The newest recorded column on versions that are recorded nowhere, with other cells of some rows, by subject."""
    found = newest(RECORDED).model_copy(deep=True)
    (column,) = found.columns
    column.libraries |= {"transformers": "99.0.0"}
    for row in found.rows:
        if row.subject in cells:
            row.cells[column.name] = cells[row.subject]
    return found


def test_versions_that_do_the_same_change_nothing() -> None:
    assert len(newest(RECORDED).rows) > 50
    assert differing(tried(), RECORDED) == []


def test_a_difference_of_the_loops_that_is_not_there_is_none() -> None:
    found = tried()
    (column,) = found.columns
    held = [row for row in found.rows if row.kind == "difference" and row.cells[column.name].outcome == "holds"]
    assert held
    found.rows = [row for row in found.rows if row not in held]
    assert differing(found, RECORDED) == []


def test_what_other_versions_do_is_named() -> None:
    fact = next(row for row in newest(RECORDED).rows if row.kind == "library")
    changes = differing(tried(**{fact.subject: Cell(outcome="differs", value="something else")}), RECORDED)
    assert [change.row.subject for change in changes] == [fact.subject]
    versions = {"transformers": "99.0.0", "torch": "2.13.0"}
    text = "\n".join(report(versions, {"transformers": "5.23.0", "torch": "2.13.0"}, changes, ["tests/x.py::test_y"]))
    assert "- transformers 99.0.0 (recorded: 5.23.0)" in text
    assert "- torch 2.13.0\n" in text
    assert "1 cell differs" in text
    assert f"- {fact.title}: " in text
    assert "now something else" in text
    assert "1 test fails.\n- tests/x.py::test_y" in text


def test_records_of_several_sets_of_versions_are_refused() -> None:
    with pytest.raises(CannotTry, match="expected the records of one set of versions"):
        differing(RECORDED, RECORDED)


def test_the_tests_of_the_contract_are_those_of_tox() -> None:
    paths = [word for word in contract() if not word.startswith("--")]
    assert "tests/checks" in paths
    assert all((ROOT / Path(word.partition("::")[0])).exists() for word in paths)
