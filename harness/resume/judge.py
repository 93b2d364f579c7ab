"""Which losses the attempts show, each once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from harness import catalogue
from harness.findings import Finding, roots
from harness.resume.attempt import Attempt
from harness.resume.loss import Evidence, Loss

Shown = TypeVar("Shown", Evidence, Finding, None)

FALLBACK = "resume::computes-otherwise"
"""What is said where nothing else explains a difference."""

TORN = "resume::checkpoint-torn"


def all_losses() -> dict[str, type[Loss]]:
    """Every loss by its id."""
    return {name: loss for name, loss in catalogue.losses().items() if issubclass(loss, Loss)}


def shown_by(attempt: Attempt) -> dict[str, Evidence]:
    """What was lost after one kill."""
    known = all_losses()
    found = {name: shown for name, loss in known.items() if (shown := loss.shown_by(attempt)) is not None}
    if "resume::fails" in found:
        return {"resume::fails": found["resume::fails"]}
    return without_fallback(found)


def without_fallback(found: dict[str, Shown]) -> dict[str, Shown]:
    """Without what is said of a difference that nothing explains, where something does: on another rank perhaps."""
    return {name: shown for name, shown in found.items() if name != FALLBACK or len(found) == 1}


def findings(attempts: Iterable[Attempt], script: str) -> list[Finding]:
    """What was lost after any of the kills; of each loss the first, and behind it what may follow from it.

    What is lost by a kill during a save, and by no other, is the save's fault. A loss that some kill shows without what
    may explain it stands alone.
    """
    known, found, following = all_losses(), dict[str, Finding](), dict[str, Finding]()
    explains = {name: loss.explains for name, loss in known.items()}
    for attempt in sorted(attempts, key=lambda each: each.kill.kind == "during a save"):
        shown, saving = shown_by(attempt), attempt.kill.kind == "during a save"
        causes = roots(shown, explains)
        for name, evidence in shown.items():
            if name in found:
                continue
            if (cause := causes[name]) is not None:
                if cause in found or not saving:
                    following.setdefault(name, replace(_finding(known[name], evidence, script), explained_by=cause))
            elif saving:
                found.setdefault(TORN, _finding(known[TORN], _torn(attempt, name, evidence), script))
                break
            else:
                found[name] = _finding(known[name], evidence, script)
    told = without_fallback(found)
    below = {
        cause: [each for name, each in following.items() if name not in found and each.explained_by == cause]
        for cause in told
    }
    return [finding for cause, each in told.items() for finding in (each, *below[cause])]


def _finding(loss: type[Loss], evidence: Evidence, script: str) -> Finding:
    where = evidence.where or f"{script}:1"
    return loss.finding(evidence.expected, evidence.observed, where, evidence.update)


def _torn(attempt: Attempt, name: str, evidence: Evidence) -> Evidence:
    if (moment := attempt.kill.moment) is not None:
        return replace(
            evidence,
            expected=f"to continue after it was killed at update {attempt.kill.at}, {moment}",
            observed=f"{name} after that kill: {evidence.observed}",
            where=None if moment.operation is None else moment.operation.where,
            update=attempt.kill.at or None,
        )
    torn = attempt.killed.saves[-1]
    return replace(
        evidence,
        expected=f"to continue although {torn.path} was being written at update {torn.at}",
        observed=f"{name} after that kill: {evidence.observed}",
        where=torn.where,
        update=torn.at,
    )
