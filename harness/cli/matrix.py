"""``harness matrix``"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.options import FOUND, baseline_folders, baselines_option, examples, format_option, json_option
from harness.cli.output import Format, Output, check_file


@click.command(
    short_help="Compare run records of several library versions side by side.",
    epilog=examples("harness matrix runs", "harness matrix --all --markdown matrix.md runs"),
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Also show the rows that are as documented on every version.")
@click.option("--beside", is_flag=True, help="Also show the recorded versions that RUNS lack.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write it as Markdown: between the markers of an existing file (docs/matrix.md), or as a new file.",
)
@format_option
@json_option("Also write it as JSON; baselines/matrix.json is the recorded one.")
@baselines_option
def matrix(
    runs: tuple[Path, ...],
    everything: bool,
    beside: bool,
    markdown: Path | None,
    json_file: Path | None,
    format_: Format,
    baselines: Path | None,
) -> None:
    """Compare run records of several library versions side by side: claims and checks, and the documents' code.

    RUNS are records (run.json, documents.json), or folders that contain some. A cell that differs from
    baselines/matrix.json is marked.

    Exit status: 0 no cell differs, 1 at least one does.
    """
    from harness.documented_run.matrix import Matrix, matrix_of, records_below
    from harness.documented_run.stages import sentences
    from harness.report import log
    from harness.report.matrix import markdown_lines, matrix_lines, write_markdown

    out = Output(json_file, format=format_)
    out.check()
    if markdown is not None:
        check_file(markdown)
    if json_file is not None and json_file.is_file():
        Matrix.read(json_file)  # anything else is not overwritten
    found = matrix_of(records_below(runs), sentences())
    files = [folder / "matrix.json" for folder in baseline_folders(baselines) if folder is not None]
    path = next((each for each in files if each.exists()), None)
    recorded = Matrix.read(path) if path else None
    if beside and recorded:
        found = found.beside(recorded)
    comparison = found.against(recorded) if recorded else None
    changes = comparison.changes if comparison else ()
    out.echo(matrix_lines(found, comparison, everything=everything))
    if markdown is not None:
        write_markdown(markdown, markdown_lines(found, comparison, everything=everything))
    out.write(found.as_json(), lambda: log.of_changes(changes))
    sys.exit(FOUND if changes else 0)
