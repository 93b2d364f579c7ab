"""``harness explain``"""

from __future__ import annotations

import json
from typing import Any

import click

from harness.cli.options import complete_faults
from harness.cli.output import echo, say


@click.command(short_help="Say what a finding is about, and what to do.")
@click.argument("name", metavar="[ID|FAMILY]", required=False, shell_complete=complete_faults)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def explain(name: str | None, as_json: bool) -> None:
    """Say what a check of harness check, a loss of harness resume or a cause of harness compare is about: why it is a
    bug, and what to do.

    Without an argument list all of them; with a family's name those of the family.
    """
    from harness import catalogue
    from harness.report.explain import list_lines, page_lines

    pages: list[dict[str, Any]] = catalogue.explain([name] if name else [])
    if as_json:
        say(json.dumps(pages, indent=2))
    elif name is not None and len(pages) == 1:
        echo(page_lines(pages[0]))
    else:
        echo(list_lines(pages))
