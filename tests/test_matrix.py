"""The matrix over versions: what each cell says, what changed, and how it is shown and kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.documented_run.matrix import Matrix, merged, records_below
from harness.documented_run.matrix import matrix_of as matrix_of_records
from harness.documented_run.record import BlockRecord, Curves, DocumentsRecord, Provenance, RunRecord
from harness.documented_run.stages import INVARIANTS
from harness.errors import CannotTry
from harness.findings import CheckOutcome, Difference, Finding
from harness.report import annotations as github
from harness.report import log
from harness.report.matrix import END, MARK, markdown_lines, matrix_lines, write_markdown

OLD, NEW = "4.49.0", "5.23.0"
ACCUMULATION = "equivalence::trainer-accumulates-as-one-batch"
SENTENCE = "Micro-batches that are accumulated | are one batch."


def matrix_of(records: Sequence[RunRecord | DocumentsRecord]) -> Matrix:
    return matrix_of_records(records, {"accumulation": SENTENCE})


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
            Finding(
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
            CheckOutcome(
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
        differences=[Difference(what="AdamW's fused", there=fused, by_hand="None", effect=0.1)],
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
                **dict[str, Any](
                    document="000", file="000.md", number=number, line=1, label=f"f{number}()", key=f"k{number}"
                )
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


def cells(matrix: Matrix, kind: str, subject: str, loop: str | None = None) -> list[tuple[str, str | None]]:
    """Of a row as it is shown."""
    found = next(each for each in merged(matrix.rows) if each.key == (kind, subject, loop))
    return [(found.cell(column.name).outcome, found.cell(column.name).value) for column in matrix.columns]


def test_columns_are_versions_in_order(matrix: Matrix) -> None:
    assert [column.name for column in matrix.columns] == [OLD, NEW]


@pytest.mark.parametrize(
    ("kind", "subject", "expected"),
    [
        ("check", ACCUMULATION, [("holds", None), ("fails", "4 times")]),
        ("check", "load::split-sizes", [("holds", None), ("holds", None)]),
        ("difference", "AdamW's fused", [("holds", None), ("differs", "True")]),
        ("library", "column", [("holds", None), ("differs", "Column")]),
        (
            "code",
            "k1",
            [("differs", "deprecated: old"), ("fails", "write from torch.optim import AdamW (ImportError: no AdamW)")],
        ),
        ("code", "k2", [("holds", None), ("holds", None)]),
        ("output", "k2", [("holds", None), ("differs", "another")]),
    ],
)
def test_cells(kind: str, subject: str, expected: list[tuple[str, str | None]], matrix: Matrix) -> None:
    assert cells(matrix, kind, subject) == expected


def test_what_a_row_is_known_by(matrix: Matrix) -> None:
    summaries = {(row.kind, row.subject): (row.summary, row.documented) for row in matrix.rows}
    assert summaries["check", ACCUMULATION] == (SENTENCE, None)
    assert summaries["library", "column"] == ("type of a dataset's column", "list")
    assert summaries["difference", "AdamW's fused"] == ("AdamW's fused", "None")
    assert summaries["code", "k1"] == ("f1()", "000:1")
    assert summaries["output", "k2"] == ("f2()", "000:2")
    titles = {(row.kind, row.subject): row.title for row in matrix.rows if row.loop != "plain"}
    assert titles["check", ACCUMULATION] == f"{ACCUMULATION} [trainer]"
    assert titles["code", "k1"] == "f1() (000:1)", "two pieces of code may have one label"


def test_what_was_not_reached_is_not_tried() -> None:
    found = matrix_of([run(OLD, {"load::a": "broken"}), run(NEW, {"load::a": "holds", "train::b": "holds"})])
    assert cells(found, "check", "train::b") == [("not tried", None), ("holds", None)]
    loops = [run(OLD, {"load::a": "x"}, loop="accelerate"), run(OLD, {"load::a": "x", "train::b": "holds"})]
    found = matrix_of([*loops, run(NEW, {"load::a": "holds", "train::b": "holds"}, loop="accelerate")])
    assert cells(found, "check", "train::b", "accelerate") == [("not tried", None), ("holds", None)]
    assert cells(found, "check", "train::b", "trainer") == [("holds", None), ("not tried", None)]


def test_what_a_library_wrote_in_bold_is_plain() -> None:
    found = matrix_of([run(OLD, {"load::a": "\x1b[1mdo not\x1b[0m load"})])
    assert cells(found, "check", "load::a") == [("fails", "do not load")]


def test_a_difference_that_is_not_listed_is_none() -> None:
    listed, not_listed = run(NEW, {}), run(OLD, {})
    not_listed.differences[0] = replace(not_listed.differences[0], what="clipping")
    found = matrix_of([listed, not_listed])
    assert cells(found, "difference", "AdamW's fused") == [("holds", None), ("differs", "True")]


def test_loops_that_come_out_alike_are_shown_as_one_row_and_others_are_not() -> None:
    def shown(outcomes: dict[str, str]) -> list[tuple[str, str | None]]:
        found = matrix_of([run(OLD, {"load::a": outcome}, loop=loop) for loop, outcome in outcomes.items()])
        return [(row.subject, row.loop) for row in merged(found.rows) if row.kind == "check"]

    assert shown({"plain": "holds", "trainer": "holds"}) == [("load::a", None)]
    assert shown({"plain": "holds", "trainer": "x"}) == [("load::a", "plain"), ("load::a", "trainer")]
    alike = {"plain": "holds", "accelerate": "x", "trainer": "holds"}
    assert shown(alike) == [("load::a", "plain, trainer"), ("load::a", "accelerate")]


def test_versions_of_another_library_tell_columns_apart() -> None:
    found = matrix_of([run(OLD, {"load::a": "holds"}, accelerate=each) for each in ("0.29.3", "0.25.0")])
    assert [column.name for column in found.columns] == [f"{OLD}, accelerate 0.25.0", f"{OLD}, accelerate 0.29.3"]


def changes(now: Matrix, recorded: Matrix) -> list[tuple[str, str, str, str | None]]:
    found = now.against(recorded).changes
    return [
        (each.row.title, each.column, each.before.outcome, each.now.outcome if each.now else None) for each in found
    ]


def test_a_cell_that_changed_is_marked_and_told(matrix: Matrix, records: list[RunRecord | DocumentsRecord]) -> None:
    now = matrix_of([run(NEW, {ACCUMULATION: "holds", "load::split-sizes": "holds"}, facts={"column": "Column"})])
    assert changes(now, matrix) == [(f"{ACCUMULATION} [trainer]", NEW, "fails", "holds")]
    lines = "\n".join(matrix_lines(now, now.against(matrix), everything=True))
    assert "holds*" in lines
    assert f"{ACCUMULATION} [trainer] on {NEW}: was fails (4 times), is holds" in lines
    assert "1 cells differ from what was recorded" in lines
    (annotation,) = github.of_log(log.of_changes(now.against(matrix).changes))
    assert annotation.endswith(f"on {NEW}::was fails, is holds")
    assert changes(matrix_of(records), matrix) == []


def test_a_regression_in_one_of_several_loops_is_a_change() -> None:
    loops = ("plain", "accelerate", "trainer")
    recorded = matrix_of([run(OLD, {"load::a": "holds"}, loop=loop) for loop in loops])
    now = matrix_of([run(OLD, {"load::a": "x" if loop == "plain" else "holds"}, loop=loop) for loop in loops])
    assert changes(now, recorded) == [("load::a [plain]", OLD, "holds", "fails")]


def test_a_cell_that_vanished_is_a_change(matrix: Matrix) -> None:
    now = matrix_of([run(NEW, {"load::split-sizes": "holds"}, facts={"column": "Column"})])
    assert changes(now, matrix) == [(f"{ACCUMULATION} [trainer]", NEW, "fails", None)]
    assert "is gone" in "\n".join(matrix_lines(now, now.against(matrix)))


def test_a_changed_value_is_a_change_and_another_machine_s_decimals_are_none(matrix: Matrix) -> None:
    now = matrix_of([run(NEW, {ACCUMULATION: "2 times", "load::split-sizes": "holds"}, facts={"column": "Column"})])
    assert changes(now, matrix) == [(f"{ACCUMULATION} [trainer]", NEW, "fails", "fails")]
    one, other = (matrix_of([run(OLD, {"a::b": f"loss {each}"})]) for each in ("0.7439973950", "0.7439973951"))
    assert changes(one, other) == []


def test_columns_are_compared_by_their_libraries(matrix: Matrix) -> None:
    both = matrix_of([run(OLD, {"load::a": "holds"}, accelerate=each) for each in ("0.29.3", "0.25.0")])
    one = matrix_of([run(OLD, {"load::a": "x"}, accelerate="0.25.0", torch="2.13.0+cpu")])
    assert changes(one, both) == []
    assert f"not compared: {OLD}, which was not recorded" in "\n".join(matrix_lines(one, one.against(both)))
    one = matrix_of([run(OLD, {"load::a": "x"}, accelerate="0.25.0")])
    assert changes(one, both) == [("load::a [trainer]", OLD, "holds", "fails")]


def test_what_is_new_or_was_not_given_is_not_changed(matrix: Matrix) -> None:
    assert changes(matrix_of([run("6.0.0", {ACCUMULATION: "9 times"})]), matrix) == []
    assert (
        changes(
            matrix_of(
                [documents(OLD, {"outcome": "deprecated", "says": "old"}, {"outcome": "runs", "shows_output": True})]
            ),
            matrix,
        )
        == []
    )
    assert "no matrix was recorded" in "\n".join(matrix_lines(matrix, None))


def test_what_a_run_did_not_reach_is_said() -> None:
    found = matrix_of([run(OLD, {"load::a": "x"}), run(NEW, {"load::a": "holds", "train::b": "holds"})])
    assert f"1 of these not tried on {OLD}: a run stopped earlier" in "\n".join(matrix_lines(found, None))


def test_the_last_of_several_records_counts_alone() -> None:
    found = matrix_of([run(OLD, {"load::a": "x", "train::b": "x"}), run(OLD, {"load::a": "holds"})])
    assert [(row.subject, row.cell(OLD).outcome) for row in found.rows if row.kind == "check"] == [("load::a", "holds")]


def test_the_same_code_is_as_it_went_where_it_went_worst() -> None:
    again = FAILS | {"key": "k"}
    found = matrix_of([documents(OLD, again, {"outcome": "not applicable", "says": "needs x", "key": "k"})])
    assert cells(found, "code", "k")[0][0] == "fails"


def test_an_output_that_is_nothing_differs() -> None:
    found = matrix_of([documents(OLD, {"outcome": "runs", "shows_output": True, "prints": ""})])
    assert cells(found, "output", "k1") == [("differs", "nothing")]


def test_runs_of_several_recipes_are_refused() -> None:
    records = [run(OLD, {}), run(OLD, {})]
    records[0].recipe["name"] = "other"
    with pytest.raises(CannotTry, match="runs of several recipes"):
        matrix_of(records)


@pytest.mark.parametrize("broken", ["libraries", "loop", "finding"])
def test_a_record_that_lacks_something_is_refused(broken: str) -> None:
    record = run(OLD, {"load::a": "x"})
    if broken == "libraries":
        record.fingerprint = {}
    elif broken == "loop":
        record.recipe = {}
    else:
        record.findings = []
    with pytest.raises(CannotTry, match=r"a record lacks .*; run it again"):
        matrix_of([record])


def test_the_terminal_shows_what_varies_and_counts_the_rest(matrix: Matrix) -> None:
    lines = list(matrix_lines(matrix, None))
    text = "\n".join(lines)
    assert any(line.split() == ["transformers", OLD, NEW] for line in lines)
    place = [line.split() for line in lines].index([ACCUMULATION, "holds", "FAILS:", "4", "times"])
    assert lines[place + 1].strip() == SENTENCE
    assert any(line.split() == "type of a dataset's column list holds differs: Column".split() for line in lines)
    assert "(1) write from torch.optim import AdamW (ImportError: no AdamW)" in text
    assert "load::split-sizes" not in text
    assert "1 more as documented, or not applicable, on all versions" in text
    assert "load::split-sizes" in "\n".join(matrix_lines(matrix, None, everything=True))


def test_markdown(matrix: Matrix) -> None:
    lines = list(markdown_lines(matrix, None))
    assert lines[0] == f"| transformers | {OLD} | {NEW} |"
    assert f"| {SENTENCE} | `{ACCUMULATION}` | holds | FAILS: 4 times |".replace("ted |", "ted \\|") in lines
    assert "| type of a dataset's column | list | holds | differs: Column |" in lines
    assert "| `f2()` | 000:2 | holds | differs: another |" in lines
    assert "1. write from torch.optim import AdamW (ImportError: no AdamW)" in lines
    assert all(line.replace("\\|", "").count("|") in (0, 4, 5) for line in lines)


def test_markdown_goes_between_the_marks(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    for ending in ("", "\nafter\n"):
        file.write_text(f"before\n{MARK}\nold\n{END}{ending}")
        write_markdown(file, iter(["new", "lines"]))
        assert file.read_text() == f"before\n{MARK}\nnew\nlines\n{END}{ending}"
    write_markdown(tmp_path / "other.md", iter(["new"]))
    write_markdown(tmp_path / "other.md", iter(["newer"]))
    assert (tmp_path / "other.md").read_text() == f"{MARK}\nnewer\n{END}\n"


@pytest.mark.parametrize("content", [b"notes\n", f"before\n{MARK}\nold\n".encode(), b"\xff\xfe"])
def test_no_other_file_is_overwritten(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(content)
    with pytest.raises(CannotTry, match="choose another file"):
        write_markdown(file, iter(["new"]))
    assert file.read_bytes() == content


def test_markdown_keeps_backticks_and_bars(matrix: Matrix) -> None:
    for row in matrix.rows:
        row.summary = row.summary.replace("f1()", "a_b() | c")
        for cell in row.cells.values():
            cell.value = cell.value and f"{cell.value}: `a_b` or a_b | <c>, and so on"
    text = "\n".join(markdown_lines(matrix, None))
    assert "`a_b` or a\\_b \\| \\<c>" in text
    assert "`a_b() \\| c`" in text


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
    recorded = Matrix.read(folder / "matrix.json")
    assert [(row.key, row.cells) for row in recorded.rows] == [(row.key, row.cells) for row in matrix.rows]
    (accumulation,) = (row.summary for row in recorded.rows if row.key == ("check", ACCUMULATION, "trainer"))
    assert accumulation == INVARIANTS["accumulation"].sentence
    assert "| transformers |" in markdown.read_text()
    assert json.loads((folder / "matrix.json").read_text())["schema"] == 2
    again = invoke(folder)
    assert again.exit_code == 0
    assert "every cell is as recorded" in again.output


def test_beside_what_was_recorded(folder: Path, matrix: Matrix) -> None:
    """One version is run again, another is new: the others stay, in the order of the versions."""
    invoke(folder, "--json", str(folder / "matrix.json"))
    shutil.rmtree(folder / "runs")
    for version in (NEW, "5.4.0"):
        below = folder / "runs" / version
        below.mkdir(parents=True)
        record = run(version, {ACCUMULATION: "0.25 times", "load::new": "holds"})
        (below / "run.json").write_text(record.model_dump_json(by_alias=True))
    result = invoke(folder, "--beside", "--json", str(folder / "matrix.json"))
    assert result.exit_code == 1
    assert f"{ACCUMULATION} [trainer] on {NEW}: was fails (4 times), is fails (0.25 times)" in result.output
    recorded = Matrix.read(folder / "matrix.json")
    assert [column.name for column in recorded.columns] == [OLD, "5.4.0", NEW]
    assert cells(recorded, "check", ACCUMULATION) == [
        ("holds", None),
        ("fails", "0.25 times"),
        ("fails", "0.25 times"),
    ]
    assert cells(recorded, "check", "load::new") == [("not tried", None), ("holds", None), ("holds", None)]
    assert cells(recorded, "code", "k2") == [("holds", None), ("not tried", None), ("not tried", None)]
    assert cells(recorded, "difference", "AdamW's fused") == [("holds", None), ("differs", "True"), ("differs", "True")]


def test_a_change_exits_with_1(folder: Path) -> None:
    invoke(folder, "--json", str(folder / "matrix.json"))
    recorded = json.loads((folder / "matrix.json").read_text())
    row = next(each for each in recorded["rows"] if (each["subject"], each.get("loop")) == (ACCUMULATION, "trainer"))
    row["cells"][NEW] = {"outcome": "holds"}
    (folder / "matrix.json").write_text(json.dumps(recorded))
    result = invoke(folder)
    assert result.exit_code == 1
    assert f"{ACCUMULATION} [trainer] on {NEW}: was holds, is fails (4 times)" in result.output


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("runs/0/run.json", "{", "run.json: the file: Invalid JSON"),
        ("runs/3/documents.json", '{"schema": 1}', "documents.json: recipe: Field required"),
        ("matrix.json", '{"schema": 3}', "matrix.json: schema: Input should be 2"),
        ("matrix.json", '{"schema": 1, "columns": [], "rows": []}', "write it again with --json"),
    ],
)
def test_a_broken_file_is_named(name: str, content: str, says: str, folder: Path) -> None:
    (folder / name).write_text(content)
    result = invoke(folder)
    assert result.exit_code == 2
    assert name.rpartition("/")[2] in result.output
    assert says in result.output
    assert "Traceback" not in result.output


def test_json_overwrites_nothing_but_a_matrix(folder: Path) -> None:
    record = folder / "runs" / "0" / "run.json"
    before = record.read_text()
    assert invoke(folder, "--json", str(record)).exit_code == 2
    assert record.read_text() == before


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"no run\.json or documents\.json in"):
        records_below([tmp_path])
    with pytest.raises(CannotTry, match="not found; give run records"):
        records_below([tmp_path / "absent"])
