"""``harness claims``"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.options import FOUND, echo


@click.command()
@click.option(
    "--documents",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Look every claim's words up in the documents in this folder (000*.txt to 004*.txt).",
)
def claims(documents: Path | None) -> None:
    """Print the documents' claims, and the checks that stand for them.

    With --documents where each document says it: exit status 1 where one does not.
    """
    from harness.stages import CLAIMS, checks_of_claims

    if documents is None:
        from harness.report.terminal import claims_lines

        echo(claims_lines(checks_of_claims()))
        return

    from harness.documents.citations import looked_up
    from harness.report.documents import citation_lines

    looked = list(looked_up(CLAIMS.values(), documents))
    echo(citation_lines(looked))
    sys.exit(FOUND if any(each.line is None for each in looked) else 0)
