"""What watching costs in instructions, beside what was recorded: the same on a busy machine as on an idle one.

``pytest tests/benchmarks/test_instructions.py --benchmark-only`` counts, two minutes and more for each test, and
compares; with ``--harness-update`` the count is recorded. The clock is pytest-benchmark's: how long a count
takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.errors import CannotTry
from harness.fingerprint import provenance
from tests.benchmarks import instructions
from tests.benchmarks.callgrind import counted, tool
from tests.benchmarks.instructions import RECORD, REPEATABLE, UNWATCHED, Instructions, InstructionsRun

pytestmark = pytest.mark.nightly

WORKLOAD = "the documented loop with a BERT of one layer"
WAYS = (UNWATCHED, "watch", "check", "trace")

DEARER = 1000
"""Turns at each event, by which it is known how many a share of the watch's instructions are."""


@pytest.fixture
def counting(benchmark: Any) -> Any:
    """pytest-benchmark's fixture, where it is asked for and there is a tool that counts."""
    if benchmark.disabled:
        pytest.skip("counts instructions, which takes minutes: --benchmark-only")
    try:
        tool()
    except CannotTry as reason:
        pytest.skip(str(reason))
    return benchmark


def run_of(found: Mapping[str, float], fingerprint: dict[str, Any]) -> InstructionsRun:
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    return instructions.run_of(found, started=started, fingerprint=fingerprint, **provenance())


def test_watching_takes_as_many_instructions_as_recorded(counting: Any, request: pytest.FixtureRequest) -> None:
    run = run_of(*counting.pedantic(counted, args=(WAYS,), rounds=1))
    counting.extra_info.update(run.instructions)
    if request.config.getoption("harness_update"):
        instructions.add(RECORD, WORKLOAD, run)
        return
    compared = instructions.compare(Instructions.read(RECORD), WORKLOAD, run)
    counting.extra_info["compared"] = [compared.outcome, *compared.grounds]
    if compared.outcome == "fails":
        pytest.fail("\n".join((*compared.dearer, *compared.grounds)), pytrace=False)
    if compared.outcome == "not applicable":
        pytest.skip(compared.grounds[0])


@pytest.fixture
def not_recording(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("harness_update"):
        pytest.skip("compares, while --harness-update records")


@pytest.mark.usefixtures("not_recording")
def test_a_count_repeats(counting: Any) -> None:
    found: list[dict[str, float]] = []
    counting.pedantic(lambda: found.append(counted(WAYS)[0]), rounds=2)
    for way in WAYS:
        counts = [each[way] for each in found]
        assert max(counts) <= (1 + REPEATABLE) * min(counts), (way, counts)


@pytest.mark.usefixtures("not_recording")
def test_a_dearer_watch_is_flagged_and_the_same_is_not(counting: Any) -> None:
    """By 3, 5 and 10 % of what watching takes, put in at each event; and not put in."""
    found, fingerprint = counted((UNWATCHED, "check", f"check+{DEARER}"))
    first = run_of({way: found[way] for way in (UNWATCHED, "check")}, fingerprint)
    recorded = Instructions(workload=WORKLOAD, runs=[first, first])
    turn = (found[f"check+{DEARER}"] - found["check"]) / DEARER
    shares = {f"check+{round(share * first.above('check') / turn)}": share for share in (0.03, 0.05, 0.10)}
    found, fingerprint = counting.pedantic(counted, args=((UNWATCHED, "check", *shares),), rounds=1)
    outcomes = {}
    for order in ("check", *shares):
        run = run_of({UNWATCHED: found[UNWATCHED], "check": found[order]}, fingerprint)
        assert run.above("check") / first.above("check") - 1 == pytest.approx(shares.get(order, 0.0), abs=0.005)
        outcomes[order] = instructions.compare(recorded, WORKLOAD, run).outcome
    assert outcomes == {"check": "holds"} | dict.fromkeys(shares, "fails")
