"""The lines of ``harness compare``."""

from __future__ import annotations

from collections.abc import Iterator

from harness.compare.differences import CompareReport, Difference
from harness.findings import few

NAMED = 4
"""Tensors that are named."""


def outcome_lines(report: CompareReport) -> Iterator[str]:
    """What differs, the first first; one line where nothing does."""
    yield f"A  {report.a}"
    yield f"B  {report.b}"
    if not report.differ:
        yield f"the same, bit for bit, in {report.updates} updates"
    for number, difference in enumerate(report.differences):
        if difference.explained_by is not None:
            may = f"may follow from {difference.explained_by}"
            yield f"also, update {difference.update}: {difference.cause}, {difference.what}; {may}"
            continue
        yield f"{'first' if number == 0 else 'also'}, update {difference.update}: {difference.cause}"
        yield f"    {_sentence(difference)}"
        if difference.tensors:
            yield f"    in {few(difference.tensors, NAMED)}"
    for line in report.equal:
        yield f"equal: {line}"
    if report.beside:
        yield "also different: " + ", ".join(
            f"{name} {one} in A, {other} in B" for name, (one, other) in report.beside.items()
        )
    if report.releases:
        yield "tested: " + ", ".join(f"{version} {what}" for version, what in report.releases.items())
    for note in report.notes:
        yield f"note: {note}"


def _sentence(difference: Difference) -> str:
    values = "; ".join(f"{value} in {run}" for value, run in zip(difference.values, "AB", strict=False))
    text = f"{difference.what}: {values}" if values else difference.what
    if difference.size is None:
        return text if values else f"{text}: different"
    share = f"{text}, largest difference {difference.size:.1e} (relative)"
    return share + (f"; rounding explains up to {difference.rounding:.0e}" if difference.rounding else "")
