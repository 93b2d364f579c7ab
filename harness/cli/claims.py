"""``harness claims``"""

from __future__ import annotations

import click

from harness.cli.options import echo


@click.command()
def claims() -> None:
    """Print the documents' claims, and the checks that stand for them."""
    from harness.report.terminal import claims_lines
    from harness.stages import checks_of_claims

    echo(claims_lines(checks_of_claims()))
