"""``harness report``"""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import baseline_folders, baselines_option, examples
from harness.cli.output import check_file, say
from harness.errors import CannotTry


@click.command(
    short_help="Write one HTML page about runs and findings.",
    epilog=examples("harness report check.json", "harness report runs/one runs/two --output both.html"),
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="The file to write. [default: report.html beside a run's record, else NAME-report.html here]",
)
@baselines_option
def report(runs: tuple[Path, ...], output: Path | None, baselines: Path | None) -> None:
    """Write one HTML page about runs and findings. It opens from disk and loads nothing from the network.

    RUNS are run records (run.json, or its folder), documents.json, the --json files of harness check, compare, resume
    and tokens, a matrix, and baselines. Several runs are compared with the first.

    Exit status: 0 the page was written (whatever it says), 2 it was not.
    """
    from harness.report.html.inputs import read_inputs
    from harness.report.html.page import check_output, default_output, write_page

    inputs = read_inputs(runs)
    output = output or default_output(runs[0], inputs)
    check_file(output)
    check_output(output)
    folder, fallback = baseline_folders(baselines)
    try:
        write_page(inputs, output, baselines=folder, fallback=fallback)
    except OSError as error:
        raise CannotTry(f"{output} cannot be written ({error.strerror}); choose another with --output") from error
    say(f"written to {output}")
