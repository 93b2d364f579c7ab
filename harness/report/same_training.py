"""How ways to start a training compare with its own command, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from harness.baseline.same_training import Apart, SameTrainingReport

MOST_APART = 6
"""Numbers and facts that are shown."""


def same_training_lines(report: SameTrainingReport) -> Iterator[str]:
    """A line for each way that is the same; of the others what is apart, settings before what follows from them."""
    named = report.command.split()[0] == report.name  # by its script
    yield report.command if named else f"{report.name}: {report.command}"
    for way in report.ways:
        if way.apart:
            yield f"  {way.way}: NOT the same training"
            yield from (f"    {_sentence(apart)}" for apart in way.apart[:MOST_APART])
            yield from [f"    and {len(way.apart) - MOST_APART} more"] * (len(way.apart) > MOST_APART)
            yield from [f"    {way.hint}"] * (way.hint is not None)
        else:
            apart = ", ".join(f"{key} at most {largest:.1e} apart" for key, largest in way.largest.items())
            yield f"  {way.way}: the same" + (f" in {way.updates} updates; {apart}" if apart else " settings")
        yield from (f"    not judged: {reason}" for reason in way.not_judged)


def _sentence(apart: Apart) -> str:
    if apart.update is None:
        return f"{apart.key}: {apart.first} -> {apart.other}"
    times = f", {apart.times} times it" if apart.times else f", up to {apart.largest:.2g} apart"
    return f"{apart.key} of update {apart.update}: {apart.first:.4g} -> {apart.other:.4g}{times}"
