"""The lines of ``harness check``."""

from __future__ import annotations

from collections.abc import Iterator

from harness.watch.script import CheckReport


def outcome_lines(report: CheckReport) -> Iterator[str]:
    """What was found, and what was looked at."""
    for finding in report.findings:
        yield from finding.lines()
    for check in report.ignored:
        yield f"  ignored: {check} found something"
    for each in report.not_looked_at:
        yield f"  not looked at: {each.check}: {each.why}"
    for note in report.notes:
        yield f"  note: {note}"
    errors = sum(finding.severity == "error" for finding in report.findings)
    warnings = len(report.findings) - errors
    counted = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((errors, "error"), (warnings, "warning")) if n]
    lacking = len(report.not_looked_at)
    if lacking:
        counted.append(f"{lacking} check{'s' * (lacking > 1)} could not look")
    passes = " of shortened passes" if report.shortened else ""
    before, in_all = report.seconds.values()
    yield (
        f"{report.script}: {', '.join(counted) or 'nothing found'} in {report.updates} updates{passes}; "
        f"{in_all:.1f} s, of which {before:.1f} s of importing and loading"
    )
