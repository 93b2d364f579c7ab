"""The lines of ``harness resume``."""

from __future__ import annotations

from collections.abc import Iterator

from harness.resume.run import ResumeReport


def outcome_lines(report: ResumeReport) -> Iterator[str]:
    """What was lost, and how often the script was killed."""
    for finding in report.findings:
        yield from finding.lines()
    survived = sum(not kill.lost for kill in report.kills)
    besides = sum(kill.besides for kill in report.kills)
    times = f"{len(report.kills)} kill{'s' * (len(report.kills) != 1)}"
    if besides:
        times += f" ({len(report.kills) - besides} requested, {besides} more just before a save that failed)"
    yield (
        f"{report.script}: {survived} of {times} survived bit for bit, {report.updates} updates; "
        f"{report.seconds['in all']:.0f} s, of which one run takes {report.seconds['uninterrupted']:.0f} s"
    )
