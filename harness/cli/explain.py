"""``harness explain``"""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.cli.options import complete_faults, examples, json_option
from harness.cli.output import STDOUT, Output


@click.command(
    short_help="Explain a finding: why it is a bug, and what to do.",
    epilog=examples("harness explain gradients::not-cleared", "harness explain gradients"),
)
@click.argument("name", metavar="[ID|FAMILY]", required=False, shell_complete=complete_faults)
@json_option("Also write it to this file.")
def explain(name: str | None, json_file: Path | None) -> None:
    """Explain a finding of harness check, resume or compare: why it is a bug, and what to do.

    Without an argument, list every finding; with the name of a family, list that family.
    """
    from harness import catalogue
    from harness.findings import UNUSUAL
    from harness.report.explain import list_lines, page_lines, unusual_lines

    follows = str(json_file)
    if name is None and ("::" in follows or follows in catalogue.names(checks_only=False)):
        name, json_file = follows, STDOUT  # explain --json ID
    output = Output(json_file)
    output.check()
    if name == UNUSUAL:
        if json_file is not None:
            raise click.UsageError(f"{UNUSUAL} is no finding: it has a page, and no entry for --json.")
        output.echo(unusual_lines())
        return
    pages = catalogue.explain([name] if name else [])
    if json_file != STDOUT:
        output.echo(page_lines(pages[0]) if name is not None and len(pages) == 1 else list_lines(pages))
    output.write_json(json.dumps(pages, indent=2))
