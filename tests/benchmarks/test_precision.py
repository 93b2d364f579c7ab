"""TF32, bf16 and torch.compile: as right as their rounding allows, and how fast beside float32."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.benchmarks.conftest import Stopwatch, Subject
from tests.benchmarks.throughput_fixture import Keeper

if TYPE_CHECKING:
    import torch

UNITS = {"tf32": 2**-11, "bf16": 2**-8, "compile": 2**-18}
"""By how much of its size a variant rounds a product. Compiled code rounds like float32, 2^-24, but adds up a product's
3072 terms in another order, which is 55 times as much."""


@contextmanager
def variant(name: str, model: torch.nn.Module) -> Iterator[Any]:
    """The model as the variant calls it, while the variant's precision is set."""
    import torch

    device = next(model.parameters()).device
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")

    def in_bf16(**batch: Any) -> Any:
        # Around one forward: autocast keeps the weights that it has rounded until its block ends.
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return model(**batch)

    def compiled() -> Any:
        backend = "inductor" if device.type == "cuda" else "eager"  # inductor needs a C compiler, and minutes on a CPU
        return torch.compile(model, dynamic=True, backend=backend)

    try:
        yield {"bf16": lambda: in_bf16, "compile": compiled}.get(name, lambda: model)()
    finally:
        torch.set_float32_matmul_precision(before)
        if name == "compile":
            torch._dynamo.reset()  # where anything was compiled, nothing is watched in windows


def loss_of(name: str, subject: Subject) -> float:
    """Of the first batch, without dropout."""
    import torch

    model = subject.document.model
    batch = {k: v.to(subject.run.device) for k, v in next(subject.document.batches()).items()}
    model.eval()
    with variant(name, model) as called, torch.no_grad():
        return called(**batch).loss.item()


@pytest.mark.nightly
@pytest.mark.parametrize("name", UNITS)
def test_precision(stopwatch: Stopwatch, subject: Subject, throughput: Keeper, name: str) -> None:
    import torch

    from harness.documented_run.stages.replays.tolerances import BF16_UNIT, rounding_band
    from tests.benchmarks.benchmark_loops import name_of
    from tests.benchmarks.measure import content, peak_memory

    assert UNITS["bf16"] == BF16_UNIT
    run, document, ratio = subject.run, subject.document, "speed_beside_fp32"
    on_cpu = run.device.type == "cpu"
    if throughput.measures and on_cpu and name != "bf16":
        pytest.skip(f"{name} is for GPUs; on a CPU there is nothing to measure")
    if name == "compile" and not on_cpu and not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("torch.compile needs a C compiler, found neither cc nor gcc")
    float32, observed = loss_of("fp32", subject), loss_of(name, subject)
    assert abs(observed - float32) <= rounding_band(run, UNITS[name])
    if name == "bf16" or (name == "tf32" and not on_cpu and torch.cuda.get_device_capability() >= (8, 0)):
        assert observed != float32, "nothing was rounded: the variant is not in force"

    def train(as_variant: str = name) -> None:
        with variant(as_variant, document.model) as called:
            document.train(called)

    kept_as = name_of(f"precision-{name}", run)
    limit = throughput.limit(kept_as, ratio)
    found = stopwatch(train, lambda: train("fp32"), subject.device, limit=limit)
    if found is None:
        return
    held = content(document.batches())
    memory = peak_memory(train, document.model, document.optimizer)
    figures = {"samples_per_second": held["rows"] / found.seconds, **memory, **found.machine}
    throughput(kept_as, {ratio: found.ratio}, figures, {ratio: found.interval}, weights=subject.weights)
