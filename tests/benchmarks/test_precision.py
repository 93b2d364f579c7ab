"""TF32, bf16 and torch.compile: as right as their rounding allows, and how fast beside float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from harness.stages.equivalence import BF16_UNIT, rounding_band
from tests.benchmarks.conftest import Subject
from tests.benchmarks.kept import Keeper
from tests.benchmarks.measure import content, peak_memory
from tests.benchmarks.test_throughput import side_by_side

UNITS = {"tf32": 2**-11, "bf16": BF16_UNIT, "compile": 2**-24}
"""By how much of its size a variant rounds a product; compiled code adds up in another order."""


@contextmanager
def variant(name: str, model: torch.nn.Module) -> Iterator[Any]:
    """The model as the variant calls it, while the variant's precision is set."""
    device = next(model.parameters()).device
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=name == "bf16"):
            yield torch.compile(model, dynamic=True) if name == "compile" else model
    finally:
        torch.set_float32_matmul_precision(before)


def loss_of(name: str, subject: Subject) -> float:
    """Of the first batch, without dropout."""
    model = subject.document.model
    batch = {k: v.to(subject.run.device) for k, v in next(subject.document.batches()).items()}
    model.eval()
    with variant(name, model) as called, torch.no_grad():
        return called(**batch).loss.item()


@pytest.mark.parametrize("name", UNITS)
def test_precision(benchmark: Any, subject: Subject, throughput: Keeper, name: str) -> None:
    run, document = subject.run, subject.document
    if name == "compile" and run.device.type == "cpu":
        pytest.skip("compiled on GPUs only; on a CPU it needs a compiler and minutes")
    float32, observed = loss_of("fp32", subject), loss_of(name, subject)
    assert abs(observed - float32) <= rounding_band(run, UNITS[name])
    assert name != "bf16" or observed != float32, "nothing was rounded: the variant is not in force"

    def train() -> None:
        with variant(name, document.model) as called:
            document.train(called)

    found = side_by_side(benchmark, train, document.train, subject)
    if found is None:
        return
    held = content(document.batches())
    figures = {"samples_per_second": held["rows"] / found[0], **peak_memory(train, run.device)}
    throughput(f"precision-{name}", {"speed_beside_fp32": found[1]}, figures, weights=subject.weights)
