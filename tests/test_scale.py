"""scripts.scale: what watching costs as work grows, from points that were measured."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from harness.watch import watch
from harness.watch.bus import Bus
from scripts.scale import __main__ as scale
from scripts.scale import clocked

SIDES = ("unwatched", "watched")


def point(size: float, more: float, memory: float = 0.0) -> dict[str, Any]:
    """An update takes a second, and ``more`` where it is watched and looked at."""
    unwatched = dict.fromkeys(("ordinary", "looked_at", "updates", "processor"), 1.0) | {
        "peak": 1e8,
        "growth": 0.0,
        "spread": 0.1,
    }
    watched = unwatched | {"looked_at": 1 + more, "peak": 1e8 + memory}
    return {"size": size, "unwatched": unwatched, "watched": watched, "seconds": {"OneFact": 3.0}, "listeners": 4.0}


def test_each_fact_and_check_has_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocked, "spent", defaultdict(float))
    monkeypatch.setattr(Bus, "add", clocked.add_clocked)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(select=["gradients::not-cleared"]):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4, 2)).sum().backward()
            optimizer.step()
    assert {"GradientLedger", "gradients::not-cleared"} <= set(clocked.spent)
    assert all(seconds > 0 for seconds in clocked.spent.values())


def test_slope_and_power() -> None:
    linear = [point(size, 1e-6 * size, 8 * size) for size in (1e3, 1e4, 1e5)]
    assert scale.slope(linear, "looked_at") == pytest.approx(1e-6)
    assert scale.slope(linear, "peak") == pytest.approx(8)
    assert scale.exponent(linear, "looked_at") == pytest.approx(1)
    squared = [point(size, 1e-9 * size**2) for size in (1e3, 1e4)]
    assert scale.exponent(squared, "looked_at") == pytest.approx(2)
    assert scale.slowest(linear[0]) == ["OneFact 75%"]


def test_ordinary_updates_that_differ_by_less_than_among_themselves_cannot_be_told() -> None:
    few = [point(size, 0) for size in (10.0, 1000.0)]
    few[-1]["watched"]["ordinary"] = 0.95
    page = scale.page({"axes": dict.fromkeys(scale.AXES, few)})
    assert not scale.can_tell(few[-1])
    assert "(-50 ms)" in page
    assert "nothing that can be told" in page
    found = {"parameters": 1e6, "modules": 1e3, "seconds": 2.0}
    assert scale.planned(found, dict.fromkeys(scale.SIZES, few))["ordinary"] == 0
    few[-1]["watched"]["ordinary"] = 1.2
    assert scale.can_tell(few[-1])
    assert scale.planned(found, dict.fromkeys(scale.SIZES, few))["ordinary"] > 0


def test_the_documented_run_is_planned_from_the_slopes() -> None:
    """0.1 s for 1e5 parameters and the same for 1e5 modules, in each update that is looked at."""
    axes = {axis: [point(size, 1e-6 * size) for size in (1e3, 1e5)] for axis in scale.SIZES}
    found = scale.planned({"parameters": 1e6, "modules": 1e3, "seconds": 2.0}, axes)
    assert found["looked_at"] == pytest.approx(1.001)
    assert found["more"] == pytest.approx(1.001 * found["times"] / (2 * scale.UPDATES))


def test_the_page_is_written_from_what_is_kept() -> None:
    kept = json.loads(scale.KEPT.read_text())
    assert scale.PAGE.read_text() == scale.page(kept)
    sizes = {axis: {size for size, _ in points} for axis, points in scale.AXES.items()}
    assert all(
        len(found) > 1 and {each["size"] for each in found} <= sizes[axis] for axis, found in kept["axes"].items()
    )
    assert kept["axes"].keys() == sizes.keys()


@pytest.mark.nightly
def test_a_point_is_measured_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "KEPT", tmp_path / "scale.json")
    monkeypatch.setattr(scale, "PAGE", tmp_path / "scale.md")
    monkeypatch.setattr(scale, "AXES", {"updates": [(40, {"updates": 40, "rows": 100}), (50, {"updates": 50})]})
    result = CliRunner().invoke(scale.main, ["--largest", "40"])
    assert result.exit_code == 0, result.output
    (found,) = json.loads(scale.KEPT.read_text())["axes"]["updates"]
    assert all(found[side]["updates"] > found[side]["ordinary"] > 0 for side in SIDES)
    assert found["watched"]["updates"] > found["unwatched"]["updates"]
    assert 0 < sum(found["seconds"].values()) <= found["listeners"]
    again = CliRunner().invoke(scale.main, ["--largest", "40"])
    assert (again.exit_code, again.output) == (0, ""), "a point that is there is not measured again"
