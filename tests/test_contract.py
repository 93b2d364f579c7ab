"""The documented contract on the built-in recipe (or the one that --recipe names), one test a check."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.documented_run.record import RunRecord

pytestmark = pytest.mark.slow


def test_documented(documented_check: Callable[[], None]) -> None:
    documented_check()


def test_run_is_recorded_whole(run_record: RunRecord) -> None:
    assert not run_record.interrupted
    assert run_record.updates == run_record.updates_planned
    curves = run_record.curves
    assert len(curves.loss) == len(curves.lr) == len(curves.grad_norm) == run_record.updates
    assert run_record.epochs[-1] == run_record.metrics
    assert len(run_record.epochs) == run_record.recipe["epochs"]
