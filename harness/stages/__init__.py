"""The documented steps in the document's order, each with its checks."""

from __future__ import annotations

from harness.claims import CLAIMS, INVARIANTS
from harness.stages import (
    batches,
    columns,
    equivalence,
    evaluate,
    load,
    model,
    optimizer,
    prepare,
    schedule,
    tokenize,
    train,
    trainer,
)
from harness.stages.chain import Run, Stage, StageResult, run_stages

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
    train.STAGE,
    evaluate.STAGE,
)

CHECKS = {check.id: check for stage in STAGES for check in (stage.completes, *stage.checks)}
"""Every check by its id, in the order in which they are run."""


def checks_of_claims() -> dict[str, list[str]]:
    """The ids of the checks that stand for each claim and each invariant; empty where there is none."""
    checks: dict[str, list[str]] = {name: [] for name in (*CLAIMS, *INVARIANTS)}
    for check in CHECKS.values():
        for name in filter(None, (check.claim, check.otherwise)):
            checks[name].append(check.id)
    return checks


__all__ = ["CHECKS", "STAGES", "Run", "Stage", "StageResult", "checks_of_claims", "run_stages"]
