"""``harness check`` names the fault on the versions that have it, and stays silent on those that do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.compat import accelerates_variable
from tests.versions import TRAINER_DIVIDES_TWICE, TRAINER_NEVER_DIVIDES, TRAINERS_ACCUMULATION, installed

HERE = Path(__file__).parent

FAULTS = {
    "trainer_accumulation.py": ("gradients::accumulation-unscaled", TRAINERS_ACCUMULATION),
    "trainer_divides_twice.py": (
        "gradients::accumulation-unscaled",
        (*TRAINER_DIVIDES_TWICE, *TRAINER_NEVER_DIVIDES),
    ),
    "prepared_scheduler.py": ("schedule::stepped-in-wrong-unit", ("accelerate<0.16",)),
}


def found(script: str, folder: Path, *launcher: str) -> list[str]:
    """The checks that found something."""
    command = [sys.executable, "-m", *(launcher or ("harness",)), "check", "--json", "found.json", str(HERE / script)]
    cpu = {accelerates_variable("ACCELERATE_USE_CPU"): "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=os.environ | cpu)
    assert (folder / "found.json").exists(), done.stderr
    return [each["check"] for each in json.loads((folder / "found.json").read_text())["findings"]]


@pytest.mark.parametrize("script", FAULTS)
def test_a_fault_is_named_where_it_is(script: str, tmp_path: Path) -> None:
    check, versions = FAULTS[script]
    assert found(script, tmp_path) == ([check] if installed(*versions) else [])


@pytest.mark.distributed
@pytest.mark.slow
def test_a_batch_that_is_lost_in_gathering(tmp_path: Path) -> None:
    torchrun = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "harness")
    expected = ["metrics::rows-missing-or-repeated"] if installed("accelerate<0.16") else []
    assert found("gathered_metrics.py", tmp_path, *torchrun) == expected


def test_each_script_is_told_of() -> None:
    text = (HERE.parents[1] / "docs" / "faults.md").read_text(encoding="utf-8")
    for script in HERE.glob("[a-z]*.py"):
        if not script.name.startswith("test_"):
            assert f"tests/faults/{script.name}" in text
