"""The lines of ``harness vary``."""

from __future__ import annotations

from collections.abc import Iterator

from harness.findings import lines_apart
from harness.vary.run import VaryReport


def outcome_lines(report: VaryReport) -> Iterator[str]:
    """What each relation came to, what was found, and how often the script was started."""
    width = max((len(each.relation) for each in report.relations), default=0)
    for relation in report.relations:
        why = f": {relation.why}" if relation.why else ""
        yield f"  {relation.relation:<{width}}  {relation.result}{why}"
    yield from lines_apart(report.findings)
    if report.findings:
        yield ""
    yield from (f"  note: {note}" for note in report.notes)
    broken = sum(each.result == "broken" for each in report.relations)
    held = report.applied - broken
    passes = " (long epochs were cut; use --full for complete ones)" * report.shortened
    yield (
        f"{report.script}: {broken} broken, {held} held, {len(report.relations) - report.applied} did not apply; "
        f"{report.starts} starts of {report.updates} updates{passes}, {report.seconds['in all']:.0f} s"
    )
