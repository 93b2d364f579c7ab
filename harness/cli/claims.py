"""``harness claims``"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from harness.cli.options import FOUND, json_option
from harness.cli.output import Output


@click.command(short_help="Print the documents' claims, and the checks that stand for them.")
@click.option(
    "--documents",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Look every claim's words up in the documents in this folder (000*.txt to 004*.txt).",
)
@json_option("Also write them to this file.")
def claims(documents: Path | None, json_file: Path | None) -> None:
    """Print the documents' claims, and the checks that stand for them.

    On a terminal each is one line, with what it says as far as there is room; in a pipe and in JSON they are whole.
    With --documents where each document says it: exit status 1 where one does not.
    """
    from harness.stages import CLAIMS, checks_of_claims

    out = Output(json_file)
    out.check()
    if documents is None:
        from harness.report.terminal import claims_json, claims_lines

        stream = sys.stderr if out.err else sys.stdout
        on_terminal = stream is not None and stream.isatty()
        out.echo(claims_lines(checks_of_claims(), shutil.get_terminal_size().columns if on_terminal else None))
        out.write_json(claims_json(checks_of_claims()))
        return

    from harness.documents.citations import looked_up
    from harness.report.documents import citation_lines, citations_json

    looked = list(looked_up(CLAIMS.values(), documents))
    out.echo(citation_lines(looked))
    out.write_json(citations_json(looked))
    sys.exit(FOUND if any(each.line is None for each in looked) else 0)
