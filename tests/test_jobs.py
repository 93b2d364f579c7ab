"""The jobs of docs/many-machines.md: what they run is run, with a small recipe and without SLURM or GitHub."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import Recipe
from tests.test_repository import environments

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "many-machines.md").read_text(encoding="utf-8")
FILE = "small-plain-cpu.json"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


SEEDS, TOGETHER, VERSIONS = blocks("bash")
(WORKFLOW,) = blocks("yaml")


def array(script: str) -> range:
    """The numbers that SLURM gives to the jobs of an array."""
    first, last = re.search(r"^#SBATCH --array=(\d+)-(\d+)$", script, re.MULTILINE).groups()  # type: ignore[union-attr]
    return range(int(first), int(last) + 1)


@pytest.fixture
def bin_(tmp_path: Path) -> Path:
    """harness and tox as the jobs call them; harness with what MORE has besides."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, does in (("harness", f'exec {sys.executable} -m harness "$@" $MORE'), ("tox", 'echo "$@"')):
        (folder / name).write_text(f"#!/bin/bash\n{does}\n")
        (folder / name).chmod(0o755)
    return folder


def run(script: str, folder: Path, bin_: Path, **environment: object) -> str:
    values = {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "MORE": ""}
    variables = os.environ | values | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def runs_of(candidate: Path) -> dict[int, Any]:
    """Of each seed what it came to, without when and by which command."""
    Baseline.read(candidate)
    runs = json.loads(candidate.read_text())["runs"]
    assert len(runs) == len({each["seed"] for each in runs})
    return {each["seed"]: {**each, "started": None, "command": None} for each in runs}


@pytest.mark.nightly
def test_the_jobs_record_each_seed_once(small: Recipe, tmp_path: Path, bin_: Path) -> None:
    (tmp_path / "mine.py").write_text(
        f"from harness.documented_run.recipe import Recipe\nsmall = {small.with_(epochs=1)!r}\n"
    )
    more = f"--recipe {tmp_path / 'mine.py'}:small"
    recorded = of_the_array(tmp_path / "array", bin_, more)
    assert set(recorded) == {42, 43}
    assert of_the_workflow(tmp_path / "workflow", bin_, more) == recorded


def of_the_array(folder: Path, bin_: Path, more: str) -> dict[int, Any]:
    folder.mkdir()
    assert len(array(SEEDS)) == 20
    for number in array(SEEDS)[:2]:
        run(SEEDS, folder, bin_, SLURM_ARRAY_TASK_ID=number, SLURM_CPUS_PER_TASK=1, MORE=more)
    run(TOGETHER, folder, bin_)
    return runs_of(folder / "baselines" / "candidates" / FILE)


def of_the_workflow(folder: Path, bin_: Path, more: str) -> dict[int, Any]:
    """Each job in a folder of its own, which is what a runner has; files go from one to the other as artifacts."""
    jobs = yaml.safe_load(WORKFLOW)["jobs"]
    assert list(jobs) == ["seed", "together"]
    assert jobs["together"]["needs"] == "seed"
    artifacts = folder / "artifacts"
    for seed in jobs["seed"]["strategy"]["matrix"]["seed"][:2]:
        job(jobs["seed"], folder / f"{seed}", artifacts, bin_, MORE=more, OMP_NUM_THREADS=1, seed=seed)
    job(jobs["together"], folder / "together", artifacts, bin_)
    return runs_of(artifacts / "candidates" / FILE)


def job(steps: Any, folder: Path, artifacts: Path, bin_: Path, **environment: object) -> None:
    folder.mkdir(parents=True)
    for step in steps["steps"]:
        of_seed = {
            key: text.replace("${{ matrix.seed }}", str(environment.get("seed")))
            for key, text in {"run": step.get("run", ""), **step.get("with", {})}.items()
        }
        action = step.get("uses", "").partition("@")[0]
        if action == "actions/upload-artifact":
            shutil.copytree(folder / of_seed["path"], artifacts / of_seed["name"])
        elif action == "actions/download-artifact":
            for each in artifacts.glob(of_seed["pattern"]):
                shutil.copytree(each, folder / of_seed["path"] / each.name)
        elif of_seed["run"].startswith("pip "):
            assert (ROOT / "constraints.txt").is_file()
        elif of_seed["run"]:
            run(of_seed["run"], folder, bin_, **environment)


def test_the_array_has_every_environment(tmp_path: Path, bin_: Path) -> None:
    called = [run(VERSIONS, tmp_path, bin_, SLURM_ARRAY_TASK_ID=number) for number in array(VERSIONS)]
    assert sorted(called) == sorted(f"run -e {name}\n" for name in environments())
