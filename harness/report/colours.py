"""Lines with colours: what was found stands out, and its labels step back."""

from __future__ import annotations

import os
import re
from typing import Any

import click

STYLES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = tuple(
    (re.compile(pattern), style)
    for pattern, style in (
        (r"^  error: [\w-]+(?:::[\w-]+)*|^harness: ", {"fg": "red", "bold": True}),
        (r"^  warning: [\w-]+(?:::[\w-]+)*", {"fg": "yellow", "bold": True}),
        (r"^    (expected|observed|where|fix)(?=  )", {"dim": True}),
        (r"^ {14}> +\d+ \|.*$", {"bold": True}),
        (
            r"(?<=, )[1-9]\d* failed\b|^\w+ +[1-9]\d* failed\b"
            r"|^(exact|quality|documented) +fails\b",
            {"fg": "red"},
        ),
        (r"(?<=, )[1-9]\d* warned\b", {"fg": "yellow"}),
        (r"^  taught +\d+  .*$", {"fg": "green"}),
        (r"^  padding +\d+  .*$", {"dim": True}),
    )
)


def coloured(line: str) -> str:
    """The line as a terminal shows it; as it is where NO_COLOR is set (no-color.org).

    >>> coloured("written to runs")
    'written to runs'
    """
    if os.environ.get("NO_COLOR"):
        return line
    for pattern, style in STYLES:
        line = pattern.sub(lambda found, style=style: click.style(found[0], **style), line)  # type: ignore[misc]
    return line
