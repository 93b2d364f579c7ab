"""What isolation costs a start of ``harness check``: with a private view of the file system, beside a mirror."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.starts.levels import Level, why_not

ROUNDS = 5

TRAIN = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
torch.save(model.state_dict(), "last.pt")
"""


@pytest.mark.nightly
@pytest.mark.parametrize("files", [10, 3_000])
def test_a_start_with_a_view_beside_one_with_a_mirror(benchmark: BenchmarkFixture, tmp_path: Path, files: int) -> None:
    for level in ("overlay", "mirror"):
        if (why := why_not(level)) is not None:
            pytest.skip(f"{level}: {why}")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "data").mkdir()
    for number in range(files):
        (tmp_path / "data" / f"{number}.txt").write_text(f"{number}")
    seconds: dict[Level, list[float]] = {"overlay": [], "mirror": []}

    def start(level: Level) -> None:
        begun = time.perf_counter()
        environment = {**os.environ, "HARNESS_ISOLATION": level, "OMP_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, "-m", "harness", "check", "-q", "train.py"], cwd=tmp_path, env=environment, check=True
        )
        seconds[level].append(time.perf_counter() - begun)

    def both() -> None:
        start("overlay")
        start("mirror")

    benchmark.pedantic(both, rounds=ROUNDS, warmup_rounds=1)
    pairs = zip(seconds["overlay"], seconds["mirror"], strict=True)
    ratio = round(statistics.median(one / other for one, other in pairs), 3)
    benchmark.extra_info["overlay over mirror"] = ratio
    print(f"{files} files: a start with a view takes {ratio} times one with a mirror")
