"""The lines that the terminal shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.claims import Claim, Invariant
from harness.findings import CheckOutcome, CheckResult, Difference, shortened
from harness.recipe import Recipe
from harness.record import RunRecord

NAMED = 4
"""Checks that are not applicable, named for each reason; run.json has all of them."""


def recipe_line(recipe: Recipe) -> str:
    data = recipe.data or f"hub {recipe.dataset}"
    loop = recipe.loop if recipe.processes == 1 else f"{recipe.loop} in {recipe.processes} processes"
    return f"recipe {recipe.name} | data {data} | checkpoint {recipe.checkpoint} | loop {loop} | seed {recipe.seed}"


def stage_lines(stage: str, seconds: float, checks: Iterable[CheckResult]) -> Iterator[str]:
    """One line for the stage, then its findings."""
    checks = list(checks)
    if all(check.outcome == "not applicable" for check in checks):
        return  # the stage of another loop
    counts = Counter(check.outcome for check in checks)
    parts = [f"{counts[outcome]} {outcome}" for outcome in ("holds", "fails", "not applicable") if counts[outcome]]
    yield f"{stage:<12}{', '.join(parts):<34}{seconds:7.1f} s"
    for check in checks:
        for finding in check.findings:
            yield from finding.lines()


def metrics(record: RunRecord) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in record.metrics.items())


def outcome_lines(record: RunRecord, output: Path | None) -> Iterator[str]:
    """What the run came to, below the stages."""
    counts = Counter(check.outcome for check in record.checks)
    if record.metrics:
        yield f"{record.updates} updates, {metrics(record)}"
    if record.apart:
        updates, *distances = record.apart.items()
        measured = ", ".join(f"{what} {distance:.2g}" for what, distance in distances)
        yield f"differs from the plain loop over {updates[1]:.0f} updates by at most: {measured}"
    yield from difference_lines(record.differences)
    for reason, checks in _reasons(record.checks).items():
        more = f" and {len(checks) - NAMED} more" if len(checks) > NAMED else ""
        yield f"not applicable: {', '.join(checks[:NAMED])}{more} ({reason})"
    warnings = sum(finding.severity == "warning" for finding in record.findings)
    total = f"{counts['holds']} of {counts['holds'] + counts['fails']} checks hold"
    if warnings:
        total += f", {warnings} warning{'s' if warnings > 1 else ''}"
    if record.interrupted:
        planned = "" if record.updates_planned is None else f" of {record.updates_planned}"
        total = f"interrupted after {record.updates}{planned} updates; {total}"
    elif record.checks_failed:
        total += f"; stopped at {record.checks[-1].stage}"
    yield total
    if output is not None:
        yield f"written to {output}"


def difference_lines(differences: Sequence[Difference]) -> Iterator[str]:
    """Where Trainer is not the document's own loop, each with its values and what it alone does to the parameters."""
    if not differences:
        return
    rows = [("difference", "there", "in the loop by hand", "moves parameters by")]
    for each in differences:
        rows.append((each.what, each.there, each.by_hand, f"up to {each.effect:.2g}" if each.effect else "nothing"))
    yield 'Trainer is not the loop by hand, which has "the same defaults"; each difference alone:'
    yield from (f"  {line}" for line in table(rows))


def _reasons(checks: Iterable[CheckOutcome]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for check in checks:
        if check.reason:
            reasons.setdefault(check.reason, []).append(check.check)
    return reasons


def claims_lines(claims: Iterable[tuple[Claim | Invariant, str, list[str]]]) -> Iterator[str]:
    """Claims and invariants as a table, each with its stage and the checks that stand for it."""
    rows = [("ID", "STAGE", "KIND", "DOCUMENTS", "EXPECTED", "CHECKS", "SAYS")]
    for claim, stage, checks in claims:
        if isinstance(claim, Invariant):
            about = ("invariant", "-", "-", shortened(" ".join(checks), 48))
        else:
            expected = sorted(claim.expected) if isinstance(claim.expected, set) else claim.expected
            shown = "-" if expected is None else shortened(f"{expected}", 48)
            documents = sorted({citation.document for citation in claim.citations})
            about = (claim.kind, " ".join(documents), shown, " ".join(checks))
        derived = f" (not in them: {claim.derived})" if isinstance(claim, Claim) and claim.derived else ""
        rows.append((claim.id, stage, *about, claim.sentence + derived))
    yield from table(rows)


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
