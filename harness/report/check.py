"""The lines of ``harness check``."""

from __future__ import annotations

from collections.abc import Iterator

from harness.watch.script import Watched


def outcome_lines(watched: Watched) -> Iterator[str]:
    """What was found, and what was looked at."""
    for finding in watched.findings:
        yield from finding.lines()
    for check in watched.ignored:
        yield f"  ignored: {check} found something (--ignore)"
    for note in watched.notes:
        yield f"  note: {note}"
    errors = sum(finding.severity == "error" for finding in watched.findings)
    warnings = len(watched.findings) - errors
    counted = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((errors, "error"), (warnings, "warning")) if n]
    passes = " of shortened passes" if watched.shortened else ""
    before, in_all = watched.seconds.values()
    yield (
        f"{watched.script}: {', '.join(counted) or 'nothing found'} in {watched.updates} updates{passes}; "
        f"{in_all:.1f} s, of which {before:.1f} s of importing and loading"
    )
