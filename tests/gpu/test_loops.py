"""The three loops on a GPU, and Accelerate on several."""

from __future__ import annotations

import pytest
import torch

from harness.recipe import LOOPS, Recipe
from harness.run import run_recipe

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("loop", LOOPS)
def test_every_check_holds(small: Recipe, loop: str) -> None:
    record = run_recipe(small.with_(loop=loop))
    assert not record.failed, record.findings
    assert record.updates == 16


@pytest.mark.distributed
@pytest.mark.parametrize("split", [False, True])
def test_every_check_holds_on_two(small: Recipe, split: bool) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip(f"needs two CUDA devices, found {torch.cuda.device_count()}")
    record = run_recipe(small.with_(loop="accelerate", processes=2, split_batches=split), timeout=120)
    assert not record.failed, record.findings
