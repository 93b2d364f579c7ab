"""What is taught, as lines: a line for each span of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.watch.teaching import Row, Span, TaughtReport

WIDTH = 100
"""Characters of a span's text that are shown, its beginning and its end."""


def lines(report: TaughtReport) -> Iterator[str]:
    """The rows, then the shares of all that were seen."""
    for number, row in enumerate(report.rows, start=1):
        yield f"row {number}, update {row.update}"
        yield from _row(row)
    yield ""
    yield from shares(report)
    yield from (f"note: {note}" for note in report.notes)


def _row(row: Row) -> Iterator[str]:
    packed = len({span.document for span in row.spans}) > 1
    for span in row.spans:
        about = [f"document {span.document}"] * packed + [span.role or ""] * any(each.role for each in row.spans)
        yield f"  {span.state:<10} {span.tokens:>5}  {'  '.join((*about, _shown(span)))}"


def _shown(span: Span) -> str:
    text = span.text.replace("\n", "\\n")
    return text if len(text) <= WIDTH else f"{text[: WIDTH // 2]} … {text[-WIDTH // 2 :]}"


def shares(report: TaughtReport) -> Iterator[str]:
    """What the rows came to, all that were seen."""
    real = report.tokens - report.padding
    yield (
        f"{report.script}: {report.rows_seen} rows in {report.updates} update{'s' * (report.updates != 1)}, "
        f"{report.tokens} tokens, {_share(report.padding, report.tokens)} of them padding; "
        f"{_share(report.taught, real)} of the others carry a loss"
    )
    if report.without_label:
        yield f"rows without any label: {report.without_label} of {report.rows_seen}"
    if report.filled:
        yield f"rows that fill their batch's width and do not end: {report.filled} of {report.rows_seen} (cut off?)"
    if report.never_taught:
        yield f"special tokens that never carry a loss: {', '.join(each.strip() for each in report.never_taught)}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"
