"""What ``harness vary --settings`` costs: beside the script alone, with 40 settings of which four do nothing."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

SETTINGS, DEAD = 40, 4

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{settings}
torch.manual_seed(0)
x = torch.randn(4096, 64)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3 * ({used}))
for epoch in range(4):
    for rows, labels in DataLoader(TensorDataset(x, y), batch_size=32):
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def script() -> str:
    """A script with settings of the learning rate, of which some are never used."""
    names = [f"LR_{number}" for number in range(SETTINGS - 3)]  # besides lr is no literal, and there are three others
    lines = "\n".join(f"{name} = {1 + number / 64}" for number, name in enumerate(names))
    return HEAD.format(settings=lines, used=" * ".join(names[: len(names) - DEAD]))


@pytest.mark.nightly
def test_all_settings_beside_the_script_alone(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script())
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    seconds: dict[str, float] = {}

    def timed(name: str, *words: str) -> None:
        begun = time.perf_counter()
        subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, check=True, capture_output=True)
        seconds[name] = time.perf_counter() - begun

    def both() -> None:
        timed("alone", "train.py")
        timed("turned", "-m", "harness", "vary", "--settings", "--json", "found.json", "train.py")

    benchmark.pedantic(both, rounds=1)
    settings = json.loads((tmp_path / "found.json").read_text())["settings"]
    turned = [each for each in settings if each["effect"] != "not turned"]
    dead = [each["seconds"] for each in turned if each["effect"] == "nothing"]
    assert len(dead) == DEAD
    benchmark.extra_info["command over script"] = ratio = round(seconds["turned"] / seconds["alone"], 2)
    print(
        f"{len(turned)} settings, {len(dead)} dead: {ratio} times the {seconds['alone']:.1f} s of the script; "
        f"a setting {statistics.median(each['seconds'] for each in turned):.2f} s (median), a dead one "
        f"{statistics.mean(dead):.2f} s (mean)"
    )
