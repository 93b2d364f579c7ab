"""The matrix over versions: what each cell says, what changed, and how it is shown and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.errors import CannotTry
from harness.matrix import Cell, Matrix, matrix_of, records_below
from harness.record import (
    BlockRecord,
    CheckRecord,
    Curves,
    DifferenceRecord,
    DocumentsRecord,
    FindingRecord,
    Provenance,
    RunRecord,
)
from harness.report.matrix import END, MARK, markdown_lines, matrix_lines, write_markdown

OLD, NEW = "4.49.0", "5.23.0"
ACCUMULATION = "equivalence::trainer-accumulates-as-one-batch"


def run(
    version: str,
    checks: dict[str, str],
    *,
    loop: str = "trainer",
    facts: dict[str, str] | None = None,
    fused: str = "True",
    **libraries: str,
) -> RunRecord:
    """A run record; a check's value is its outcome, or what was observed where it fails."""
    outcomes = ("holds", "not applicable")
    return RunRecord(
        recipe={"loop": loop, "processes": 1},
        fingerprint={"libraries": {"transformers": version, **libraries}},
        findings=[
            FindingRecord(
                check=check,
                severity="warning",
                update=None,
                where=None,
                message="m",
                expected="e",
                observed=observed,
                hint="h",
            )
            for check, observed in checks.items()
            if observed not in outcomes
        ],
        updates=0,
        curves=Curves(loss=[], lr=[], grad_norm=[]),
        metrics={},
        epochs=[],
        seconds={},
        checks=[
            CheckRecord(
                check=check,
                stage="equivalence",
                claim="accumulation",
                outcome=outcome if outcome in outcomes else "fails",  # type: ignore[arg-type]
                reason=None,
            )
            for check, outcome in checks.items()
        ],
        updates_planned=None,
        interrupted=False,
        started="now",
        model=None,
        differences=[DifferenceRecord(what="AdamW's fused", there=fused, by_hand="None", effect=0.1)],
        facts=facts or {},
    )


def documents(version: str, *blocks: dict[str, Any]) -> DocumentsRecord:
    return DocumentsRecord(
        recipe={},
        fingerprint={"libraries": {"transformers": version}},
        provenance=Provenance(),
        started="now",
        blocks=[
            BlockRecord(
                **{
                    "document": "000",
                    "file": "000.md",
                    "number": number,
                    "line": 1,
                    "label": f"f{number}()",
                    "key": f"k{number}",
                }
                | each
            )
            for number, each in enumerate(blocks, start=1)
        ],
    )


FAILS = {
    "outcome": "fails",
    "says": "ImportError: no AdamW",
    "replacement": "from torch.optim import AdamW",
    "source": "s",
    "repaired": True,
}


@pytest.fixture
def records() -> list[RunRecord | DocumentsRecord]:
    """Two versions, the newer of which has the accumulation fault, given in the other order."""
    return [
        run(NEW, {ACCUMULATION: "4 times", "load::split-sizes": "holds"}, facts={"column": "Column"}),
        run(OLD, {ACCUMULATION: "holds", "load::split-sizes": "holds"}, facts={"column": "list"}, fused="None"),
        run(
            OLD,
            {ACCUMULATION: "not applicable", "load::split-sizes": "holds"},
            loop="plain",
            facts={"column": "list"},
            fused="None",
        ),
        documents(OLD, {"outcome": "deprecated", "says": "old"}, {"outcome": "runs", "shows_output": True}),
        documents(NEW, FAILS, {"outcome": "runs", "shows_output": True, "prints": "another"}),
    ]


@pytest.fixture
def matrix(records: list[RunRecord | DocumentsRecord]) -> Matrix:
    return matrix_of(records)


def cells(matrix: Matrix, row: str) -> list[tuple[str, str | None]]:
    found = matrix.row(row)
    assert found is not None, [each.id for each in matrix.rows]
    return [(found.cell(column.name).outcome, found.cell(column.name).value) for column in matrix.columns]


def test_columns_are_versions_in_order(matrix: Matrix) -> None:
    assert [column.name for column in matrix.columns] == [OLD, NEW]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ACCUMULATION, [("holds", None), ("fails", "4 times")]),
        ("load::split-sizes", [("holds", None), ("holds", None)]),
        ("difference::AdamW's fused", [("holds", None), ("differs", "True")]),
        ("library::column", [("holds", None), ("differs", "Column")]),
        (
            "code::k1",
            [("differs", "deprecated: old"), ("fails", "write from torch.optim import AdamW (ImportError: no AdamW)")],
        ),
        ("code::k2", [("holds", None), ("holds", None)]),
        ("output::k2", [("holds", None), ("differs", "another")]),
    ],
)
def test_cells(row: str, expected: list[tuple[str, str | None]], matrix: Matrix) -> None:
    assert cells(matrix, row) == expected


def test_what_was_not_reached_is_not_tried() -> None:
    found = matrix_of([run(OLD, {"load::a": "broken"}), run(NEW, {"load::a": "holds", "train::b": "holds"})])
    assert cells(found, "train::b") == [("not tried", None), ("holds", None)]
    loops = [run(OLD, {"load::a": "x"}, loop="accelerate"), run(OLD, {"load::a": "x", "train::b": "holds"})]
    found = matrix_of([*loops, run(NEW, {"load::a": "holds", "train::b": "holds"}, loop="accelerate")])
    assert cells(found, "train::b [accelerate]") == [("not tried", None), ("holds", None)]
    assert cells(found, "train::b [trainer]") == [("holds", None), ("not tried", None)]


def test_a_difference_that_is_not_listed_is_none() -> None:
    listed, not_listed = run(NEW, {}), run(OLD, {})
    not_listed.differences[0].what = "clipping"
    assert cells(matrix_of([listed, not_listed]), "difference::AdamW's fused") == [("holds", None), ("differs", "True")]


def test_loops_that_come_out_alike_are_one_row_and_others_are_not() -> None:
    alike = matrix_of([run(OLD, {"load::a": "holds"}, loop=loop) for loop in ("plain", "trainer")])
    assert [row.id for row in alike.rows if row.kind == "check"] == ["load::a"]
    apart = matrix_of([run(OLD, {"load::a": each}, loop=loop) for loop, each in (("plain", "holds"), ("trainer", "x"))])
    assert [row.id for row in apart.rows if row.kind == "check"] == ["load::a [plain]", "load::a [trainer]"]


def test_versions_of_another_library_tell_columns_apart() -> None:
    found = matrix_of([run(OLD, {"load::a": "holds"}, accelerate=each) for each in ("0.29.3", "0.25.0")])
    assert [column.name for column in found.columns] == [f"{OLD}, accelerate 0.25.0", f"{OLD}, accelerate 0.29.3"]


def test_a_cell_that_changed_is_marked_and_told(matrix: Matrix, records: list[RunRecord | DocumentsRecord]) -> None:
    now = matrix_of([run(NEW, {ACCUMULATION: "holds", "load::split-sizes": "holds"}, facts={"column": "Column"})])
    changed = now.changed(matrix)
    assert [(row.id, column, before.outcome) for row, column, before in changed] == [(ACCUMULATION, NEW, "fails")]
    lines = "\n".join(matrix_lines(now, matrix, everything=True))
    assert "holds*" in lines
    assert f"{ACCUMULATION} on {NEW}: was fails (4 times), is holds" in lines
    assert "1 cells are not what was recorded" in lines
    assert matrix_of(records).changed(matrix) == []


def test_a_changed_value_is_a_change(matrix: Matrix) -> None:
    now = matrix_of([run(NEW, {ACCUMULATION: "2 times"}, facts={"column": "Column"})])
    assert [before for _, _, before in now.changed(matrix)] == [Cell(outcome="fails", value="4 times")]


def test_what_is_new_is_not_changed(matrix: Matrix) -> None:
    assert matrix_of([run("6.0.0", {ACCUMULATION: "9 times"})]).changed(matrix) == []
    assert matrix_of([run(NEW, {"load::new": "holds"}, facts={})]).changed(matrix) == []


def test_the_terminal_shows_what_varies_and_counts_the_rest(matrix: Matrix) -> None:
    lines = list(matrix_lines(matrix, None))
    text = "\n".join(lines)
    assert any(line.split() == ["transformers", OLD, NEW] for line in lines)
    assert any(line.split() == [ACCUMULATION, "holds", "FAILS:", "4", "times"] for line in lines)
    assert "(1) write from torch.optim import AdamW (ImportError: no AdamW)" in text
    assert "load::split-sizes" not in text
    assert "1 more as documented, or not applicable, on all versions" in text
    assert "load::split-sizes" in "\n".join(matrix_lines(matrix, None, everything=True))


def test_markdown(matrix: Matrix) -> None:
    lines = list(markdown_lines(matrix, None))
    assert lines[0] == f"| transformers | {OLD} | {NEW} |"
    assert f"| `{ACCUMULATION}` | holds | FAILS: 4 times |" in lines
    assert "1. write from torch.optim import AdamW (ImportError: no AdamW)" in lines
    assert all(line.count("|") in (0, 4) for line in lines)


def test_markdown_goes_between_the_marks(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text(f"before\n{MARK}\nold\n{END}\nafter\n")
    write_markdown(file, iter(["new", "lines"]))
    assert file.read_text() == f"before\n{MARK}\nnew\nlines\n{END}\nafter\n"
    file.write_text(f"before\n{MARK}\nold\n")
    with pytest.raises(CannotTry, match="has only one of the lines"):
        write_markdown(file, iter(["new"]))
    write_markdown(tmp_path / "other.md", iter(["new"]))
    assert (tmp_path / "other.md").read_text() == "new\n"


def test_a_matrix_is_read_as_it_was_written(matrix: Matrix, tmp_path: Path) -> None:
    matrix.write(tmp_path / "matrix.json")
    assert Matrix.read(tmp_path / "matrix.json") == matrix


# ----------------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def folder(records: list[RunRecord | DocumentsRecord], tmp_path: Path) -> Path:
    for number, record in enumerate(records):
        below = tmp_path / "runs" / str(number)
        below.mkdir(parents=True)
        name = "run.json" if isinstance(record, RunRecord) else "documents.json"
        (below / name).write_text(record.model_dump_json(by_alias=True))
    return tmp_path


def invoke(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["matrix", str(folder / "runs"), "--baselines", str(folder), *arguments])


def test_the_command(folder: Path, matrix: Matrix) -> None:
    markdown = folder / "matrix.md"
    result = invoke(folder, "--json", str(folder / "matrix.json"), "--markdown", str(markdown))
    assert result.exit_code == 0, result.output
    assert ACCUMULATION in result.output
    assert Matrix.read(folder / "matrix.json").rows == matrix.rows
    assert markdown.read_text().startswith("| transformers |")
    again = invoke(folder)
    assert again.exit_code == 0
    assert "every cell is as recorded" in again.output


def test_a_change_exits_with_1(folder: Path) -> None:
    invoke(folder, "--json", str(folder / "matrix.json"))
    recorded = json.loads((folder / "matrix.json").read_text())
    row = next(each for each in recorded["rows"] if each["id"] == ACCUMULATION)
    row["cells"][NEW] = {"outcome": "holds"}
    (folder / "matrix.json").write_text(json.dumps(recorded))
    result = invoke(folder)
    assert result.exit_code == 1
    assert f"{ACCUMULATION} on {NEW}: was holds, is fails (4 times)" in result.output


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("runs/0/run.json", "{", "is no run record"),
        ("runs/3/documents.json", '{"schema": 1}', "is no record of documents"),
        ("matrix.json", '{"schema": 2}', "is no recorded matrix"),
    ],
)
def test_a_broken_file_is_named(name: str, content: str, says: str, folder: Path) -> None:
    (folder / name).write_text(content)
    result = invoke(folder)
    assert result.exit_code == 2
    assert name.rpartition("/")[2] in result.output
    assert says in result.output
    assert "Traceback" not in result.output


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"no run\.json or documents\.json in"):
        records_below([tmp_path])
    with pytest.raises(CannotTry, match="not found; give run records"):
        records_below([tmp_path / "absent"])
