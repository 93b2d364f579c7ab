"""Counted instructions against the recorded ones: what watching takes more fails, and nothing passes by absence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CannotTry
from tests.benchmarks import instructions
from tests.benchmarks.instructions import (
    RECORD,
    REPEATABLE,
    UNWATCHED,
    Instructions,
    InstructionsRun,
    compare,
    run_of,
)
from tests.benchmarks.test_instructions import WAYS, WORKLOAD

FINGERPRINT = {
    "device": "cpu",
    "device_name": None,
    "python": "3.11.7",
    "machine": "x86_64",
    "tool": "valgrind-3.19.0",
    "libraries": {"torch": "2.13.0", "transformers": "5.23.0", "numpy": "2.3.0"},
}
COUNTS = {UNWATCHED: 15e6, "check": 26e6, "trace": 16e6}
LOOP = "a loop"


def run(changes: dict[str, float] | None = None, fingerprint: dict[str, Any] = FINGERPRINT) -> InstructionsRun:
    known = {"started": "2026-11-20", "commit": "a" * 40, "dirty": False, "command": "pytest"}
    return run_of(COUNTS | (changes or {}), fingerprint=fingerprint, **known)


def record(folder: Path) -> Path:
    path = folder / "instructions.json"
    for factor in (1.0, 1.001, 0.999):
        instructions.add(path, LOOP, run({way: count * factor for way, count in COUNTS.items()}))
    return path


@pytest.fixture
def baseline(tmp_path: Path) -> Instructions:
    return Instructions.read(record(tmp_path))


def dearer(way: str, share: float) -> dict[str, float]:
    return {way: COUNTS[way] + share * (COUNTS[way] - COUNTS[UNWATCHED])}


def test_as_many_hold_with_their_grounds(baseline: Instructions) -> None:
    verdict = compare(baseline, LOOP, run())
    assert (verdict.outcome, verdict.dearer) == ("holds", ())
    assert verdict.grounds == (
        "unwatched: 15.000 M an update, recorded 15.000 M",
        "check: 11.000 M above unwatched, recorded 11.000 M (3 counts): +0.00%; fails above +2.3%",
        "trace: 1.000 M above unwatched, recorded 1.000 M (3 counts): +0.00%; fails above +5.0%",
    )


@pytest.mark.parametrize(("way", "share"), [("check", 0.024), ("check", 0.03), ("check", 0.1), ("trace", 0.051)])
def test_what_takes_more_fails_by_its_own_name(baseline: Instructions, way: str, share: float) -> None:
    verdict = compare(baseline, LOOP, run(dearer(way, share)))
    (dearer_way,) = verdict.dearer
    assert verdict.outcome == "fails"
    assert dearer_way.startswith(f"{way}: expected {'11.250' if way == 'check' else '1.050'} M above unwatched")


@pytest.mark.parametrize("share", [0.022, -0.022])
def test_within_the_margin_is_neither_flagged_nor_a_gain(baseline: Instructions, share: float) -> None:
    verdict = compare(baseline, LOOP, run(dearer("check", share)))
    assert verdict.outcome == "holds"
    assert "gain" not in " ".join(verdict.grounds)


def test_a_gain_is_said(baseline: Instructions) -> None:
    verdict = compare(baseline, LOOP, run(dearer("trace", -0.3)))
    assert verdict.outcome == "holds"
    assert verdict.grounds[2].endswith("-30.00%; fails above +5.0%; a gain: record it, so that it is kept")


def test_a_way_that_is_no_longer_counted_fails(baseline: Instructions) -> None:
    found = run()
    del found.instructions["trace"]
    (missing,) = compare(baseline, LOOP, found).dearer
    assert (missing.partition(":")[0], missing.endswith("found nothing")) == ("trace", True)


def test_a_way_that_was_not_recorded_cannot_be_compared(baseline: Instructions) -> None:
    with pytest.raises(CannotTry, match="new was not recorded; record it with"):
        compare(baseline, LOOP, run({"new": 17e6}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"python": "3.12.1"}, "python was 3.11.7 and is 3.12.1"),
        ({"tool": "valgrind-3.22.0"}, "tool was valgrind-3.19.0 and is valgrind-3.22.0"),
        ({"machine": "aarch64"}, "machine was x86_64 and is aarch64"),
        ({"libraries": {"torch": "2.14.0", "transformers": "5.23.0"}}, "torch was 2.13.0 and is 2.14.0"),
        ({"libraries": {"torch": "2.13.0"}}, "transformers was 5.23.0 and is None"),
    ],
)
def test_other_versions_are_not_compared(baseline: Instructions, change: dict[str, Any], reason: str) -> None:
    """Not even where they take twice as many: that may be the versions' doing."""
    verdict = compare(baseline, LOOP, run(dearer("check", 1.0), FINGERPRINT | change))
    assert (verdict.outcome, verdict.grounds) == ("not applicable", (f"not compared: {reason}",))


def test_counts_of_these_versions_are_found_among_others(baseline: Instructions) -> None:
    other = FINGERPRINT | {"python": "3.12.1"}
    baseline.runs += [run({UNWATCHED: 10e6, "check": 12e6, "trace": 11e6}, other)]
    assert compare(baseline, LOOP, run()).outcome == "holds"
    assert compare(baseline, LOOP, run(dearer("check", 0.03))).outcome == "fails"


def test_other_libraries_do_not_matter(baseline: Instructions) -> None:
    libraries = FINGERPRINT["libraries"] | {"numpy": "2.4.0"}  # type: ignore[operator]
    assert compare(baseline, LOOP, run(None, FINGERPRINT | {"libraries": libraries})).outcome == "holds"


@pytest.mark.parametrize("factor", [1 + 1.5 * REPEATABLE, 1 - 1.5 * REPEATABLE])
def test_another_unwatched_loop_says_nothing_of_watching(baseline: Instructions, factor: float) -> None:
    verdict = compare(baseline, LOOP, run({UNWATCHED: factor * COUNTS[UNWATCHED]}))
    assert verdict.outcome == "not applicable"
    assert "something else than the watching counts otherwise here" in verdict.grounds[0]


def test_another_loop_is_not_compared(baseline: Instructions) -> None:
    verdict = compare(baseline, "another", run())
    assert verdict.grounds == ("not compared: the loop is another and the recorded one a loop",)


def test_recorded_counts_that_disagree_are_no_baseline(baseline: Instructions) -> None:
    baseline.runs[0].instructions["check"] *= 1 + 2 * REPEATABLE
    with pytest.raises(CannotTry, match=r"the recorded counts of check are .* expected within 0\.5%; record it anew"):
        compare(baseline, LOOP, run())


@pytest.mark.parametrize("counts", [{}, {UNWATCHED: 1.0}, {"check": 1.0, "trace": 1.0}])
def test_a_count_has_both_sides(counts: dict[str, float]) -> None:
    with pytest.raises(CannotTry, match="counted instructions: instructions: expected unwatched and one way"):
        run_of(counts, started="", commit=None, dirty=None, command="", fingerprint=FINGERPRINT)


@pytest.mark.parametrize("count", [math.nan, math.inf, 0.0, -1.0])
def test_what_no_count_can_be_is_not_recorded(count: float) -> None:
    with pytest.raises(CannotTry, match=r"counted instructions: instructions\.check"):
        run({"check": count})


def test_another_loop_is_not_added(tmp_path: Path) -> None:
    path = record(tmp_path)
    with pytest.raises(CannotTry, match="is of a loop, expected another; delete it first"):
        instructions.add(path, "another", run())


def test_the_recorded_counts_are_of_clean_commits_and_agree() -> None:
    recorded = Instructions.read(RECORD)
    assert all(each.commit and each.dirty is False for each in recorded.runs)
    assert {way for each in recorded.runs for way in each.instructions} == set(WAYS)
    assert len(recorded.runs) > 1
    assert all(compare(recorded, WORKLOAD, each).outcome == "holds" for each in recorded.runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content | {"schema": 2}, r"schema: Input should be 1 \(of a newer harness\?\)"),
        (lambda content: content | {"runs": []}, "runs: List should have at least 1 item"),
        (lambda content: content | {"surprise": 1}, "surprise: Extra inputs are not permitted"),
    ],
)
def test_broken_files(tmp_path: Path, change: Callable[[Any], Any], message: str) -> None:
    path = record(tmp_path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(CannotTry, match=rf"record of instructions .*instructions\.json: {message}"):
        Instructions.read(path)
