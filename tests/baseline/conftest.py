"""Runs that were never made: what the comparison reads is data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.documented_run.baseline import review, stored
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import RECIPES
from harness.documented_run.record import Curves, Provenance, RunRecord

UPDATES = 30
FINGERPRINT: dict[str, Any] = {
    "device": "cpu",
    "device_name": None,
    "cpu": "a",
    "machine": "x86_64",
    "libraries": {"torch": "2.13.0", "transformers": "5.23.0"},
}

MakeRecord = Callable[..., RunRecord]


def make_record(seed: int = 42, *, recipe: dict[str, Any] | None = None, **changes: Any) -> RunRecord:
    """A whole run of the built-in recipe whose figures depend on the seed alone."""
    random = np.random.default_rng(seed)
    values: dict[str, Any] = {
        "recipe": RECIPES["tiny"].with_(seed=seed).as_dict() | (recipe or {}),
        "fingerprint": FINGERPRINT,
        "findings": [],
        "updates": UPDATES,
        "curves": Curves(
            loss=(0.7 - 0.01 * np.arange(UPDATES) + 0.01 * random.normal(size=UPDATES)).tolist(),
            lr=[5e-5] * UPDATES,
            grad_norm=[1.0] * UPDATES,
        ),
        "metrics": {"accuracy": round(random.normal(0.93, 0.01) * 408) / 408, "f1": random.normal(0.95, 0.008)},
        "epochs": [],
        "seconds": {},
        "checks": [],
        "updates_planned": UPDATES,
        "interrupted": False,
        "started": "2026-11-20T12:00:00+00:00",
        "model": None,
        "inputs": {"data": "d" * 64, "checkpoint": "c" * 64},
        "provenance": Provenance(commit="a" * 40, dirty=False, command="harness baseline record"),
        "rows": {"train": 3668, "validation": 408, "test": 1725},
        "weights": f"{seed:016x}",
    }
    return RunRecord(**(values | changes))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the accepted baseline of ten seeds."""
    for seed in range(42, 52):
        stored.add(tmp_path, make_record(seed))
    review.accept(tmp_path, "tiny-plain-cpu", "the first one")
    return tmp_path


@pytest.fixture
def baseline(folder: Path) -> Baseline:
    return Baseline.read(folder / "tiny-plain-cpu.json")
