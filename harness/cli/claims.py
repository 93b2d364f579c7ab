"""``harness claims``"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from harness.cli.options import FOUND, examples, json_option
from harness.cli.output import Output


@click.command(
    short_help="Print the documents' claims and the checks that test them.",
    epilog=examples("harness claims", "harness claims --json claims.json"),
)
@click.option(
    "--documents",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Go through the documents in this folder (000*.txt to 004*.txt), sentence by sentence.",
)
@json_option("Also write them to this file.")
def claims(documents: Path | None, json_file: Path | None) -> None:
    """Print the documents' claims and the checks that test them.

    A terminal shows one shortened line for each claim; a pipe and JSON get the whole text.

    With --documents, print every sentence, statement, comment and printed output of the documents with its claims, or
    with the reason why it has none.

    Exit status: 0, or 1 if a sentence has neither, or a claim cites words that its document lacks.
    """
    from harness.documented_run.stages import CLAIMS, checks_of_claims

    out = Output(json_file)
    out.check()
    if documents is None:
        from harness.report.terminal import claims_json, claims_lines

        stream = sys.stderr if out.err else sys.stdout
        on_terminal = stream is not None and stream.isatty()
        out.echo(claims_lines(checks_of_claims(), shutil.get_terminal_size().columns if on_terminal else None))
        out.write_json(claims_json(checks_of_claims()))
        return

    from harness.documented_run.documents.citations import looked_up
    from harness.documented_run.documents.index import index
    from harness.report.documents import index_json, index_lines

    looked, indexed = list(looked_up(CLAIMS.values(), documents)), index(CLAIMS.values(), documents)
    out.echo(index_lines(indexed, looked))
    out.write_json(index_json(indexed, looked))
    complete = all(each.line is not None for each in looked) and not any(each.missing for each in indexed)
    sys.exit(0 if complete else FOUND)
