"""The documented steps in the document's order, each with its checks."""

from __future__ import annotations

from collections.abc import Iterator

from harness.documented_run.claims import Claim, Invariant
from harness.documented_run.stages import (
    batches,
    columns,
    costs,
    equivalence,
    evaluate,
    launch,
    load,
    model,
    optimizer,
    prepare,
    schedule,
    tokenize,
    train,
    trainer,
)
from harness.documented_run.stages.chain import Run, Stage, StageResult, run_stages

STAGES: tuple[Stage, ...] = (
    load.STAGE,
    tokenize.STAGE,
    columns.STAGE,
    batches.STAGE,
    model.STAGE,
    trainer.STAGE,
    optimizer.STAGE,
    prepare.STAGE,
    schedule.STAGE,
    equivalence.STAGE,
    costs.STAGE,
    train.STAGE,
    evaluate.STAGE,
    launch.STAGE,
)

CHECKS = {check.id: check for stage in STAGES for check in (stage.completes, *stage.checks)}
"""Every check by its id, in the order in which they are run."""


_STAND_FOR = {each.id: each for stage in STAGES for each in stage.stands_for.values()}
CLAIMS = {name: each for name, each in _STAND_FOR.items() if isinstance(each, Claim)}
INVARIANTS = {name: each for name, each in _STAND_FOR.items() if isinstance(each, Invariant)}


def sentences() -> dict[str, str]:
    """What each claim and invariant says, by id."""
    return {name: each.sentence for name, each in _STAND_FOR.items()}


def checks_of_claims() -> Iterator[tuple[Claim | Invariant, str, list[str]]]:
    """Each claim with its stage, then each invariant with "-", and the ids of the checks that stand for it."""
    both: list[Claim | Invariant] = [*CLAIMS.values(), *INVARIANTS.values()]
    for one in both:
        checks = [check.id for check in CHECKS.values() if one.id in (check.claim, check.fallback_invariant)]
        stage = next(stage.name for stage in STAGES if one.id in stage.stands_for)
        yield one, stage if isinstance(one, Claim) else "-", checks


__all__ = [
    "CHECKS",
    "CLAIMS",
    "INVARIANTS",
    "STAGES",
    "Run",
    "Stage",
    "StageResult",
    "checks_of_claims",
    "run_stages",
    "sentences",
]
