"""The lines that the terminal shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.documented_run.claims import Claim, Invariant
from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord
from harness.files import StrictModel
from harness.findings import CheckOutcome, CheckResult, Difference, shortened


class ClaimShown(StrictModel):
    """A claim of the documents, or an invariant of the harness."""

    id: str
    stage: str
    kind: Literal["exact", "ball park", "invariant"] = "invariant"
    says: str
    checks: list[str]
    """Ids of the checks that stand for it."""
    documents: list[str] = Field(default_factory=list)
    expected: Any = None
    derived: str | None = None
    """What it follows from, where no document says it."""


class ClaimsShown(StrictModel):
    """What ``harness claims`` lists."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    claims: list[ClaimShown]


def recipe_line(recipe: Recipe) -> str:
    data = recipe.data or f"hub {recipe.dataset}"
    loop = recipe.loop if recipe.processes == 1 else f"{recipe.loop} in {recipe.processes} processes"
    return f"recipe {recipe.name} | data {data} | checkpoint {recipe.checkpoint} | loop {loop} | seed {recipe.seed}"


def stage_lines(stage: str, seconds: float, checks: Iterable[CheckResult]) -> Iterator[str]:
    """One line for the stage, then its findings."""
    checks = list(checks)
    if all(check.outcome == "not applicable" for check in checks):
        return  # the stage of another loop
    counts = Counter("warns" if check.outcome == "fails" and not check.failed else check.outcome for check in checks)
    words = {"holds": "passed", "fails": "failed", "warns": "warned", "not applicable": "did not apply"}
    parts = [f"{counts[outcome]} {word}" for outcome, word in words.items() if counts[outcome]]
    yield f"{stage:<12}{', '.join(parts):<34}{seconds:7.1f} s"
    for check in checks:
        for finding in check.findings:
            yield from finding.lines()


def metrics(record: RunRecord) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in record.metrics.items())


def outcome_lines(record: RunRecord, output: Path | None, *, verbose: bool = False) -> Iterator[str]:
    """What the run came to, below the stages; with ``verbose`` each check that is not applicable by name."""
    counts = Counter(check.outcome for check in record.checks)
    if record.metrics:
        yield f"{record.updates} updates, {metrics(record)}"
    if record.apart:
        updates, *distances = record.apart.items()
        measured = ", ".join(f"{what} {distance:.2g}" for what, distance in distances)
        yield f"differs from the plain loop over {updates[1]:.0f} updates by at most: {measured}"
    yield from difference_lines(record.differences)
    reasons = _reasons(record.checks)
    if reasons and not verbose:
        silent = sum(map(len, reasons.values()))
        yield f"{silent} checks did not apply: they are about other recipes or loops (-v names them)"
    for reason, checks in reasons.items() if verbose else ():
        yield f"did not apply ({reason}):"
        yield from (f"  {check}" for check in checks)
    warnings = sum(finding.severity == "warning" for finding in record.findings)
    total = f"{counts['holds']} of {counts['holds'] + counts['fails']} checks passed"
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
    rows = [("difference", "there", "in the plain loop", "moves parameters by")]
    for each in differences:
        rows.append((each.what, each.there, each.by_hand, f"up to {each.effect:.2g}" if each.effect else "nothing"))
    yield 'Trainer differs from the plain loop, though the document says "the same defaults"; each difference alone:'
    yield from (f"  {line}" for line in table(rows))


def _reasons(checks: Iterable[CheckOutcome]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for check in checks:
        if check.reason:
            reasons.setdefault(check.reason, []).append(check.check)
    return reasons


def claims_lines(claims: Iterable[tuple[Claim | Invariant, str, list[str]]], width: int | None = None) -> Iterator[str]:
    """Claims and invariants as a table, each with its stage and the checks that stand for it.

    Within ``width`` characters id, stage and as much as there is room for of what it says.
    """
    if width is not None:
        short = [("ID", "STAGE", "SAYS"), *((claim.id, stage, claim.sentence) for claim, stage, _ in claims)]
        yield from (shortened(line, width) for line in table(short))
        return
    rows = [("ID", "STAGE", "KIND", "DOCUMENTS", "EXPECTED", "CHECKS", "SAYS")]
    for claim, stage, checks in claims:
        if isinstance(claim, Invariant):
            about = ("invariant", "-", "-", shortened(" ".join(checks), 48))
        else:
            shown = "-" if claim.expected is None else shortened(f"{claim.expected}", 48)
            documents = sorted({citation.document for citation in claim.citations})
            about = (claim.kind, " ".join(documents), shown, " ".join(checks))
        derived = f" (not in them: {claim.derived})" if isinstance(claim, Claim) and claim.derived else ""
        rows.append((claim.id, stage, *about, claim.sentence + derived))
    yield from table(rows)


def claims_json(claims: Iterable[tuple[Claim | Invariant, str, list[str]]]) -> str:
    """``harness claims --json``: what the table has, whole."""
    listed = []
    for claim, stage, checks in claims:
        shown = ClaimShown(id=claim.id, stage=stage, says=claim.sentence, checks=checks)
        if isinstance(claim, Claim):
            shown.kind, shown.expected, shown.derived = claim.kind, claim.expected, claim.derived
            shown.documents = sorted({citation.document for citation in claim.citations})
        listed.append(shown)
    return ClaimsShown(claims=listed).model_dump_json(indent=1)


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
