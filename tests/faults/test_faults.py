"""``harness check`` and ``harness resume`` name the fault on the versions that have it, and stay silent on others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.compat import accelerates_variable
from tests.server import server_of
from tests.versions import (
    EPOCH_SET_BACK,
    RANDOM_STATE_NOT_LOADED,
    TRAINER_DIVIDES_TWICE,
    TRAINER_NEVER_DIVIDES,
    TRAINER_REPLAYS,
    TRAINERS_ACCUMULATION,
    installed,
    installed_all,
)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

FAULTS = {
    "trainer_accumulation.py": ("gradients::accumulation-unscaled", TRAINERS_ACCUMULATION),
    "trainer_divides_twice.py": (
        "gradients::accumulation-unscaled",
        (*TRAINER_DIVIDES_TWICE, *TRAINER_NEVER_DIVIDES),
    ),
    "prepared_scheduler.py": ("schedule::stepped-in-wrong-unit", ("accelerate<0.16",)),
}

LOST = {
    "resume_trainer_order.py": ("resume::data-order-lost", installed_all(*TRAINER_REPLAYS)),
    "resume_trainer_noise.py": ("resume::random-state-lost", True),
    "resume_skipped_batches.py": ("resume::data-order-lost", installed(*EPOCH_SET_BACK)),
    "resume_next_epoch.py": ("resume::data-order-lost", True),
    "resume_default_sampler.py": ("resume::data-order-lost", True),
    "resume_random_state.py": ("resume::random-state-lost", installed_all(*RANDOM_STATE_NOT_LOADED)),
}
"""What is lost by a kill, and whether the versions that are installed lose it."""


def found(script: str, folder: Path, config: pytest.Config, *, processes: int = 1) -> list[str]:
    """The checks that found something that follows from nothing else that was found."""
    command = ("check", "--json", "found.json", str(HERE / script))
    cpu = {accelerates_variable("ACCELERATE_USE_CPU"): "true"}
    done = server_of(config).run(folder, *command, processes=processes, environment=cpu)
    assert (folder / "found.json").exists(), done.stderr
    findings = json.loads((folder / "found.json").read_text())["findings"]
    return [each["check"] for each in findings if each["explained_by"] is None]


@pytest.mark.slow
@pytest.mark.parametrize("script", FAULTS)
def test_a_fault_is_named_where_it_is(script: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    check, versions = FAULTS[script]
    assert found(script, tmp_path, pytestconfig) == ([check] if installed(*versions) else [])


@pytest.mark.distributed
@pytest.mark.slow
@pytest.mark.skipif(not installed("transformers>=4.57"), reason="older Trainers start several processes on GPUs alone")
def test_a_gradient_that_grows_with_the_processes(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    expected = ["ranks::gradient-scaled"] if installed("transformers>=5.23") else []
    assert found("trainer_processes.py", tmp_path, pytestconfig, processes=2) == expected


@pytest.mark.distributed
@pytest.mark.slow
def test_a_batch_that_is_lost_in_gathering(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    expected = ["metrics::rows-missing-or-repeated"] if installed("accelerate<0.16") else []
    assert found("gathered_metrics.py", tmp_path, pytestconfig, processes=2) == expected


@pytest.mark.slow
@pytest.mark.skipif(not installed("accelerate>=0.28"), reason="the scripts use DataLoaderConfiguration, of 0.28")
@pytest.mark.parametrize(
    "script", [next(iter(LOST)), *(pytest.param(each, marks=pytest.mark.nightly) for each in list(LOST)[1:])]
)
def test_what_is_lost_by_a_kill_is_named_where_it_is(script: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    check, lost = LOST[script]
    shutil.copy(HERE / script, tmp_path)
    command = ("--command", "resume", "--kills", "1", "--json", "found.json", script)
    done = server_of(pytestconfig).run(tmp_path, *command, program="tests.resume.forked", limit=240)
    assert done.status == int(lost), done.stderr
    report = json.loads((tmp_path / "found.json").read_text())
    assert [each["check"] for each in report["findings"]] == [check] * lost
    assert len(report["kills"]) == 1


def test_each_script_is_told_of() -> None:
    text = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    for script in HERE.glob("[a-z]*.py"):
        if not script.name.startswith("test_"):
            assert f"tests/faults/{script.name}" in text
