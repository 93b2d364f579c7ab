"""The three loops on a GPU, bit for bit where torch can, and Accelerate on several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from harness.documented_run.recipe import LOOPS, Recipe
from harness.documented_run.record import RunRecord

gpu = pytest.mark.gpu


def run_once(benchmark: Any, recipe: Recipe, **options: Any) -> RunRecord:
    """One run, through the fixture without which --benchmark-only would skip the test."""
    from harness.documented_run.run import run_recipe  # seconds, which collecting need not take

    record: RunRecord = benchmark.pedantic(run_recipe, args=(recipe,), kwargs=options, rounds=1)
    return record


@gpu
@pytest.mark.parametrize("loop", LOOPS)
def test_every_check_holds(benchmark: Any, small: Recipe, loop: str) -> None:
    record = run_once(benchmark, small.with_(loop=loop))
    assert not record.failed, record.findings
    assert record.updates == 16
    assert record.fingerprint["device"] == "cuda"


@gpu
@pytest.mark.distributed
@pytest.mark.parametrize("split", [False, True])
def test_every_check_holds_on_two(benchmark: Any, small: Recipe, split: bool) -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip(f"needs two CUDA devices, found {torch.cuda.device_count()}")
    record = run_once(benchmark, small.with_(loop="accelerate", processes=2, split_batches=split), timeout=120)
    assert not record.failed, record.findings


DETERMINISTIC = """
import json, sys
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from harness.documented_run.recipe import Recipe
from harness.documented_run.run import quiet_libraries, run_recipe

torch.use_deterministic_algorithms(True)
quiet_libraries()
recipe = Recipe(**json.loads(sys.argv[1]))
with sdpa_kernel(SDPBackend.MATH):
    records = [run_recipe(recipe.with_(loop=loop)) for loop in ("plain", "accelerate")]
found = [{"losses": record.curves.loss, "weights": record.weights, "device": record.fingerprint["device"],
          "errors": [each.message for each in record.findings if each.severity == "error"]} for record in records]
print(json.dumps(found))
"""
"""In a process of its own: cuBLAS reads its workspace's size once, before the first product."""


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.nightly), pytest.param("cuda", marks=gpu)])
def test_plain_and_accelerate_agree_bit_for_bit(benchmark: Any, small: Recipe, device: str) -> None:
    """With deterministic algorithms a GPU's two loops are one too."""
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    if device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    command = [sys.executable, "-c", DETERMINISTIC, json.dumps(small.with_(epochs=1).as_dict())]
    options = {"env": environment, "capture_output": True, "text": True, "timeout": 600}
    done = benchmark.pedantic(subprocess.run, args=(command,), kwargs=options, rounds=1)
    assert done.returncode == 0, done.stderr
    plain, accelerated = json.loads(done.stdout.splitlines()[-1])
    assert plain == accelerated
    assert plain["device"] == device
    assert len(plain["losses"]) == 8
    assert plain["errors"] == []
