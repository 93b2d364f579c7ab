"""The recorded curve on any machine: what rounding does is let through, everything else is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.documented_run.baseline import stored
from harness.documented_run.baseline.compare import compare
from harness.documented_run.baseline.curve import EARLY, MEASURED, ROWS, relative, same_draws
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import RECIPES
from harness.documented_run.record import Curves, RunRecord, Verdict
from harness.errors import CannotTry
from harness.fingerprint import draws, fingerprint
from scripts.silent_changes import SKIPPED, changed_run
from tests.baseline.conftest import FINGERPRINT, make_record

SHIPPED = Path(__file__).parents[2] / "baselines" / "tiny-plain-cpu.json"
ELSEWHERE = json.loads(Path(__file__).with_name("curves_elsewhere.json").read_text())["runs"]
"""Runs of recorded seeds on another CPU, with other kernels, threads and versions: losses in steps of float32 from the
recorded ones."""

SAFETY = 4
"""How many times the measured distances the band has, at least."""

SHORT = 60


@pytest.fixture(scope="module")
def shipped() -> Baseline:
    return Baseline.read(SHIPPED)


def curve_elsewhere(baseline: Baseline, name: str) -> list[float]:
    """The losses of such a run."""
    measured = ELSEWHERE[name]
    recorded = baseline.run(measured["seed"])
    assert recorded is not None
    bits = np.array(recorded.curve, np.float32).view(np.int32) + np.array(measured["steps"], np.int32)
    return [float(loss) for loss in bits.view(np.float32)]


def record_of(baseline: Baseline, name: str, **changes: Any) -> RunRecord:
    """The record of such a run; ``curve`` and ``lr`` take the place of its own."""
    measured = ELSEWHERE[name]
    recorded = baseline.run(measured["seed"])
    assert recorded is not None
    assert baseline.lr is not None
    curve, lr = changes.pop("curve", curve_elsewhere(baseline, name)), changes.pop("lr", baseline.lr)
    values: dict[str, Any] = {
        "seed": measured["seed"],
        "inputs": baseline.inputs,
        "fingerprint": recorded.fingerprint | measured["fingerprint"],
        "curves": Curves(loss=curve, lr=lr, grad_norm=[1.0] * len(curve)),
        "updates": len(curve),
        "updates_planned": len(curve),
        "metrics": measured["metrics"],
        "weights": "another sum",
    }
    return make_record(**(values | changes))


def exact(baseline: Baseline, record: RunRecord) -> Verdict:
    return compare(baseline, [record])[0]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_another_machine_rounds_holds(shipped: Baseline, name: str) -> None:
    curve = curve_elsewhere(shipped, name)
    recorded = shipped.run(ELSEWHERE[name]["seed"])
    assert recorded is not None
    assert curve != recorded.curve
    exact, quality, _ = compare(shipped, [record_of(shipped, name)])
    assert exact.outcome == "holds", exact.findings
    (ground,) = exact.grounds
    assert ground.startswith(f"seed {recorded.seed}: 1377 losses compared within rounding, on another fingerprint (")
    assert quality.grounds == ("this seed is in the baseline already, so it says nothing new about quality",)
    assert max(MEASURED["tiny"].taken(recorded.curve, curve)) * SAFETY < 1


def times_100(curve: list[float]) -> list[float]:
    return [*curve[:-1], curve[-1] * 100]


def shifted(curve: list[float]) -> list[float]:
    return [*curve[1:], curve[-1]]


def shifted_late(curve: list[float]) -> list[float]:
    """As of a run that skips the batch of update 1301."""
    return [*curve[:1300], *shifted(curve[1300:])]


def off_once(update: int) -> Callable[[list[float]], list[float]]:
    def off(curve: list[float]) -> list[float]:
        return [*curve[: update - 1], curve[update - 1] * 1.003, *curve[update:]]

    return off


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize(
    ("tamper", "update"),
    [
        (times_100, 1377),
        (shifted, 1),
        (shifted_late, 1301),
        (off_once(1), 1),
        (off_once(700), 700),
        (off_once(1377), 1377),
    ],
)
def test_another_curve_is_refused_on_another_machine(
    shipped: Baseline, name: str, tamper: Callable[[list[float]], list[float]], update: int
) -> None:
    """And the first update outside is named, with both losses and the band."""
    curve = tamper(curve_elsewhere(shipped, name))
    found = exact(shipped, record_of(shipped, name, curve=curve))
    assert found.outcome == "fails"
    (finding,) = found.findings
    recorded = shipped.run(ELSEWHERE[name]["seed"])
    assert recorded is not None
    assert (finding.update, finding.where) == (update, f"tiny-plain-cpu.json, seed {recorded.seed}, curve")
    assert f"loss {recorded.curve[update - 1]!r}" in finding.expected
    assert f"{MEASURED['tiny'].at(update):.1e}" in finding.expected
    assert f"{curve[update - 1]!r}" in finding.observed


def test_another_seed_is_refused(shipped: Baseline) -> None:
    other = shipped.run(50)
    assert other is not None
    assert [each.update for each in exact(shipped, record_of(shipped, "intel", curve=other.curve)).findings] == [1]


@pytest.mark.parametrize("length", [1376, 1378])
def test_a_curve_of_another_length_is_refused(shipped: Baseline, length: int) -> None:
    curve, lr = curve_elsewhere(shipped, "intel"), shipped.lr
    assert lr is not None
    changed = {"curve": (curve * 2)[:length], "lr": (lr * 2)[:length]}
    found = exact(shipped, record_of(shipped, "intel", **changed))
    assert [(each.expected, each.observed) for each in found.findings] == [("1377 losses", f"{length}")]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("update", [1, 700, 1377])
def test_a_loss_that_is_no_number_is_refused(shipped: Baseline, bad: float, update: int) -> None:
    curve = curve_elsewhere(shipped, "intel")
    curve[update - 1] = bad
    with pytest.raises(CannotTry, match=rf"seed 42: curve\.{update - 1}: .*not a finite number"):
        compare(shipped, [record_of(shipped, "intel", curve=curve)])
    assert MEASURED["tiny"].taken([0.5], [bad]) == [math.inf]


@pytest.mark.parametrize("name", ["loss", "lr"])
def test_a_curve_that_is_missing_is_refused(shipped: Baseline, name: str) -> None:
    record = record_of(shipped, "intel")
    setattr(record.curves, name, [])
    with pytest.raises(CannotTry, match=f"has 0 values of {name} for 1377 updates"):
        compare(shipped, [record])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_other_learning_rates_are_refused_everywhere(shipped: Baseline, device: str) -> None:
    """They are the same bits on every machine: also where no loss can be compared."""
    assert shipped.lr is not None
    machine: dict[str, Any] = {"device": device, "device_name": "NVIDIA H200"} if device == "cuda" else {}
    baseline = shipped.model_copy(update={"hardware": "nvidia-h200" if machine else "cpu"})
    gpu = record_of(baseline, "intel").fingerprint | machine
    assert exact(baseline, record_of(baseline, "intel", fingerprint=gpu)).outcome != "fails"
    for lr, update in (
        ([rate * 1.01 for rate in shipped.lr], 1),
        ([*shipped.lr[:900], *shipped.lr[901:], 0.0], 901),
    ):
        found = exact(baseline, record_of(baseline, "intel", fingerprint=gpu, lr=lr))
        assert [(each.update, each.observed) for each in found.findings] == [(update, f"{lr[update - 1]!r}")]
        assert found.findings[0].expected == f"learning rate {shipped.lr[update - 1]!r}"


@pytest.mark.parametrize("rows", [ROWS, -ROWS, ROWS + 1, -ROWS - 1])
@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_the_same_curve_with_another_end(shipped: Baseline, metric: str, rows: int) -> None:
    recorded = shipped.run(42)
    assert recorded is not None
    metrics = dict(recorded.metrics)
    metrics[metric] += rows / 408
    found = exact(shipped, record_of(shipped, "intel", metrics=metrics))
    expected = [] if abs(rows) == ROWS else [f"tiny-plain-cpu.json, seed 42, {metric}"]
    assert [finding.where for finding in found.findings] == expected


def test_a_loss_of_nothing_is_no_division_by_nothing() -> None:
    assert relative(0.0, 0.0) == 0.0
    assert relative(0.0, 1e-9) > 1


# ------------------------------------------------------------------------------------------- where no band is known


def outcome_of(recorded: RunRecord, run: RunRecord) -> tuple[str, str]:
    other = make_record(43, recipe=recorded.recipe | {"seed": 43}, fingerprint=recorded.fingerprint)
    verdict = exact(stored.of_records([recorded, other]), run)
    return verdict.outcome, verdict.grounds[0] if verdict.grounds else ""


def moved(by: float, update: int, **changes: Any) -> RunRecord:
    """A run one loss of which is off."""
    record = make_record(**changes)
    record.curves.loss[update - 1] *= 1 + by
    return record


@pytest.mark.parametrize(
    ("by", "update", "outcome"),
    [(EARLY.floor / 2, 1, "not applicable"), (2 * EARLY.floor, 20, "fails"), (0.1, 21, "not applicable")],
)
def test_a_recipe_that_was_not_measured(by: float, update: int, outcome: str) -> None:
    """Its first updates are compared, loosely; the verdict says that it is no more than that."""
    mine: dict[str, Any] = {"recipe": {"name": "mine"}}
    cpu = {"fingerprint": FINGERPRINT | {"cpu": "b"}}
    assert EARLY.updates == 20
    found = outcome_of(make_record(**mine), moved(by, update, **mine, **cpu))
    assert found[0] == outcome
    assert "only the first 20 losses compared, on another fingerprint (cpu a there, b here)" in found[1]
    assert "how rounding grows with recipe mine was not measured" in found[1]


def test_a_recipe_of_the_name_of_a_measured_one_has_no_band() -> None:
    other: dict[str, Any] = {"recipe": {"lr": 1e-3}}
    found = outcome_of(make_record(**other), make_record(**other, fingerprint=FINGERPRINT | {"cpu": "b"}))
    assert found[0] == "not applicable"
    assert "was not measured" in found[1]


@pytest.mark.parametrize(
    ("recorded", "here"),
    [
        ({"draws": "mkl"}, {"draws": "other"}),
        ({}, {"machine": "aarch64"}),
        ({}, {"machine": "arm64", "draws": "other"}),
    ],
)
def test_where_other_masks_are_drawn(recorded: dict[str, Any], here: dict[str, Any]) -> None:
    run = moved(0.3, 1, fingerprint=FINGERPRINT | here)
    outcome, says = outcome_of(make_record(fingerprint=FINGERPRINT | recorded), run)
    assert outcome == "not applicable"
    assert "the dropout masks differ" in says


def test_what_is_drawn_is_not_asked_where_it_was_not_recorded() -> None:
    """Of fingerprints of before it was kept."""
    assert outcome_of(make_record(), make_record(fingerprint=FINGERPRINT | {"draws": "mkl"}))[0] == "holds"
    assert same_draws({"machine": "x86_64", "draws": "a"}, {"machine": "aarch64", "draws": "a"})


@pytest.mark.parametrize(
    ("deterministic", "driver", "outcome", "says"),
    [
        (False, "580", "not applicable", "on cuda without deterministic algorithms"),
        (True, "580", "holds", "compared bit for bit"),
        (True, "590", "not applicable", "how rounding grows on cuda was not measured"),
    ],
)
def test_a_gpu(deterministic: bool, driver: str, outcome: str, says: str) -> None:
    gpu = {"device": "cuda", "device_name": "NVIDIA H200", "deterministic_algorithms": deterministic}
    recorded = make_record(fingerprint=FINGERPRINT | gpu | {"gpu": {"driver": "580"}})
    found = outcome_of(recorded, make_record(fingerprint=FINGERPRINT | gpu | {"gpu": {"driver": driver}}))
    assert found[0] == outcome
    assert says in found[1]


# ------------------------------------------------------------------------------------------------ trained right here


def test_what_a_seed_draws_does_not_depend_on_threads_and_draws_nothing() -> None:
    import torch

    torch.manual_seed(1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    try:
        found = set()
        for count in (1, 2):
            torch.set_num_threads(count)
            found.add(draws())
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1
    assert torch.equal(before, torch.get_rng_state())
    assert fingerprint("cpu")["draws"] in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first"),
    [
        pytest.param("nothing", None, marks=pytest.mark.nightly),
        ("learning rate 1 % off", 2),
        pytest.param("one skipped update", SKIPPED + 1, marks=pytest.mark.nightly),
    ],
)
def test_a_short_run_here_beside_the_shipped_curve(shipped: Baseline, name: str, first: int | None) -> None:
    """On whatever machine this is: the recorded losses, and each silent change at the update at which it acts."""
    recorded = shipped.run(42)
    assert recorded is not None
    here = changed_run(RECIPES["tiny"], name, SHORT)
    if not same_draws(recorded.fingerprint, here.fingerprint):
        pytest.skip("this machine draws other masks of dropout than the recorded")
    taken = MEASURED["tiny"].taken(recorded.curve[:SHORT], here.curves.loss)
    outside = (update for update, each in enumerate(taken, start=1) if each > 1)
    assert next(outside, None) in ((first,) if first is None else range(first, first + 3))
    assert shipped.lr is not None
    assert (here.curves.lr == shipped.lr[:SHORT]) == (name != "learning rate 1 % off")
