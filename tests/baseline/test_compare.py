"""The comparison can fail: every fault that is put in is found, in the comparison that should, with file and key."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from harness.documented_run.baseline import stored
from harness.documented_run.baseline.compare import baseline_of, compare, compare_candidate
from harness.documented_run.baseline.curve import differences
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import Recipe
from harness.documented_run.record import Curves, RunRecord, Verdict
from harness.errors import CannotTry
from harness.findings import CheckOutcome, Finding
from harness.report.baseline import baseline_lines, verdict_lines
from tests.baseline.conftest import FINGERPRINT, UPDATES, make_record


def verdicts(baseline: Baseline, *records: RunRecord) -> dict[str, Verdict]:
    return {verdict.comparison: verdict for verdict in compare(baseline, records)}


def with_losses(losses: list[float], **changes: Any) -> RunRecord:
    curves = Curves(loss=losses, lr=[5e-5] * len(losses), grad_norm=[1.0] * len(losses))
    return make_record(curves=curves, updates=len(losses), updates_planned=len(losses), **changes)


def recorded_losses() -> list[float]:
    return make_record().curves.loss


def test_the_same_run_holds(baseline: Baseline) -> None:
    found = verdicts(baseline, make_record())
    assert {comparison: verdict.outcome for comparison, verdict in found.items()} == {
        "exact": "holds", "quality": "not applicable", "documented": "not applicable"
    }  # fmt: skip
    assert found["exact"].grounds == (f"seed 42: {UPDATES} losses and a checksum of the weights compared bit for bit",)
    assert found["quality"].grounds == ("this seed is in the baseline already, so it says nothing new about quality",)
    assert found["documented"].grounds == ("about dataset glue/mrpc; this recipe has built-in/mrpc-shaped",)


def test_a_new_seed_is_of_the_recorded_quality(baseline: Baseline) -> None:
    found = verdicts(baseline, make_record(seed=60), make_record(seed=61))
    assert (found["exact"].outcome, found["quality"].outcome) == ("not applicable", "holds")
    assert "no run has a recorded seed (42, 43," in found["exact"].grounds[0]
    assert "smallest detectable drop with 2 runs 0.0" in found["quality"].grounds[0]


def shifted(losses: list[float]) -> list[float]:
    return [*losses[1:], losses[-1]]


def one_bad_last_update(losses: list[float]) -> list[float]:
    return [*losses[:-1], losses[-1] + 1e-12]


@pytest.mark.parametrize(
    ("change", "update"), [(shifted, 1), (one_bad_last_update, UPDATES), (lambda losses: losses[:-1], None)]
)
def test_another_curve(baseline: Baseline, change: Any, update: int | None) -> None:
    found = verdicts(baseline, with_losses(change(recorded_losses())))["exact"]
    assert found.outcome == "fails"
    assert found.findings[0].where == "tiny-plain-cpu.json, seed 42, curve"
    assert found.findings[0].update == update


@pytest.mark.parametrize("name", ["weights", "accuracy", "f1"])
def test_the_same_curve_with_another_end(baseline: Baseline, name: str) -> None:
    record = make_record()
    changed = {"weights": "0" * 16} if name == "weights" else {"metrics": record.metrics | {name: 0.9301}}
    found = verdicts(baseline, make_record(**changed))["exact"]
    assert [finding.where for finding in found.findings] == [f"tiny-plain-cpu.json, seed 42, {name}"]


@pytest.mark.parametrize(("accuracy", "says"), [(0.80, "drop"), (0.999, "gain")])
def test_another_quality_in_either_direction(baseline: Baseline, accuracy: float, says: str) -> None:
    found = verdicts(baseline, make_record(seed=60, metrics={"accuracy": accuracy, "f1": 0.95}))["quality"]
    assert found.outcome == "fails"
    (finding,) = found.findings
    assert finding.where == "tiny-plain-cpu.json, accuracy"
    assert says in finding.hint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": {"accuracy": 0.93}}, "has the metrics accuracy; expected accuracy, f1"),
        ({"metrics": {"accuracy": 0.93, "f1": 0.95, "recall": 0.9}}, "has the metrics accuracy, f1, recall; expected"),
        ({"metrics": {"accuracy": math.nan, "f1": 0.95}}, "accuracy: "),
        ({"metrics": {"accuracy": math.inf, "f1": 0.95}}, "accuracy: "),
        ({"metrics": {"accuracy": 93.0, "f1": 0.95}}, "accuracy is 93.0; expected 0 to 1"),
        ({"updates": 3}, "made 3 of 30 updates; only complete runs are recorded"),
        ({"interrupted": True}, "only complete runs are recorded"),
        ({"weights": None}, "only complete runs are recorded"),
        ({"recipe": {"lr": 3e-5}}, "recipe.lr is 5e-05 in the baseline and 3e-05 in the run"),
        ({"inputs": {"data": "e" * 64, "checkpoint": "c" * 64}}, "inputs.data is 'dddd.* in the baseline and 'eeee"),
        ({"inputs": {}}, "inputs.checkpoint is 'cccc.* in the baseline and None in the run"),
        (
            {"fingerprint": FINGERPRINT | {"device": "cuda", "device_name": "NVIDIA H200"}},
            "hardware is 'cpu' in the baseline and 'nvidia-h200' in the run",
        ),
    ],
)
def test_what_cannot_be_compared(baseline: Baseline, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CannotTry, match=message):
        compare(baseline, [make_record(**changes)])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_losses_that_are_no_numbers(baseline: Baseline, bad: float) -> None:
    with pytest.raises(CannotTry, match=r"seed 42: curve\.29: not a finite number"):
        compare(baseline, [with_losses([*recorded_losses()[:-1], bad])])


def test_no_runs_and_repeated_seeds(baseline: Baseline) -> None:
    with pytest.raises(CannotTry, match="no run to compare"):
        compare(baseline, [])
    with pytest.raises(CannotTry, match="have the same seed"):
        compare(baseline, [make_record(), make_record()])


def test_one_seed_has_no_spread(baseline: Baseline) -> None:
    baseline.runs = baseline.runs[:1]
    with pytest.raises(CannotTry, match="baseline tiny-plain-cpu has only one seed"):
        compare(baseline, [make_record()])


def few(accuracies: list[float], f1s: list[float]) -> Baseline:
    return stored.of_records(
        [
            make_record(seed, metrics={"accuracy": accuracy, "f1": f1})
            for seed, (accuracy, f1) in enumerate(zip(accuracies, f1s, strict=True), start=42)
        ]
    )


def test_a_comparison_that_could_see_no_drop_does_not_hold() -> None:
    """As a newcomer met it: three seeds, and only a drop of more than 1 would have been seen."""
    blind = few([0.5, 0.475, 0.6], [0.3, 0.6, 0.1])
    found = verdicts(blind, make_record(60, metrics={"accuracy": 0.55, "f1": 0.0}))["quality"]
    assert found.outcome == "not applicable"
    assert found.grounds[0] == "too few seeds: record more, or compare more new ones (--seeds)"
    assert "accuracy: too few seeds to detect any possible drop (at most 0.0250)" in found.grounds
    assert "f1: too few seeds to detect any possible drop (at most 0.3333)" in found.grounds
    lines = list(baseline_lines(blind))
    assert lines[-1].endswith("detect: none that is possible, none that is possible, none that is possible")


def test_one_metric_may_see_what_the_other_cannot() -> None:
    half = few([0.93, 0.94, 0.935], [0.3, 0.6, 0.1])
    found = verdicts(half, make_record(60, metrics={"accuracy": 0.93, "f1": 0.3}))["quality"]
    assert found.outcome == "holds"
    assert [ground.partition(":")[0] for ground in found.grounds if "too few seeds" in ground] == ["f1"]


def test_a_gain_that_few_seeds_do_not_explain_still_fails() -> None:
    guessing = few([0.500, 0.502, 0.504], [0.010, 0.012, 0.014])
    good = make_record(60, metrics={"accuracy": 1.0, "f1": 1.0})
    assert verdicts(guessing, good)["quality"].outcome == "fails"
    same = make_record(60, metrics={"accuracy": 0.502, "f1": 0.012})
    assert verdicts(guessing, same)["quality"].outcome == "not applicable"


@pytest.mark.parametrize(("seeds", "outcome"), [(2, "not applicable"), (4, "holds")])
def test_more_seeds_see_what_two_do_not(seeds: int, outcome: str) -> None:
    recorded = [0.90, 0.85, 0.93, 0.88][:seeds]
    new = make_record(60, metrics={"accuracy": 0.89, "f1": 0.89})
    assert verdicts(few(recorded, recorded), new)["quality"].outcome == outcome


def test_where_the_data_is_read_from_does_not_matter(baseline: Baseline) -> None:
    assert verdicts(baseline, make_record(recipe={"data": "elsewhere"}))["exact"].outcome == "holds"


@pytest.mark.parametrize(("accuracy", "outcome"), [(0.83, "holds"), (0.70, "fails")])
@pytest.mark.parametrize("loop", ["plain", "trainer"])
def test_documented_ball_park(accuracy: float, outcome: str, loop: str) -> None:
    documented = Recipe(loop=loop)
    runs = [
        make_record(seed, recipe=documented.with_(seed=seed).as_dict(), metrics={"accuracy": accuracy, "f1": 0.88})
        for seed in (1, 2)
    ]
    assert verdicts(stored.of_records(runs), runs[0])["documented"].outcome == outcome


def test_a_candidate_is_compared_seed_by_seed(baseline: Baseline) -> None:
    candidate = baseline.model_copy(deep=True)
    candidate.runs[3].curve[-1] += 1e-9
    exact, quality = compare_candidate(baseline, candidate)
    assert (exact.outcome, quality.outcome) == ("fails", "holds")
    assert [finding.where for finding in exact.findings] == ["tiny-plain-cpu.json, seed 45, curve"]


def test_lines(baseline: Baseline) -> None:
    shown = list(verdict_lines(compare(baseline, [make_record(metrics={"accuracy": 0.8, "f1": 0.95})])))
    assert "quality     fails" in shown
    assert any(line.startswith("    expected  accuracy from 0.") for line in shown)
    assert any("; smallest detectable drop with 1 run 0.0" in line and "(80% power)" in line for line in shown)
    lines = list(baseline_lines(baseline))
    assert lines[0] == "tiny-plain-cpu: 10 seeds, the first one"
    assert len(lines) == 1 + 1 + 10 + 2
    assert lines[-1].startswith("f1: 0.9")


@pytest.mark.parametrize("rows", [304, 326, 391])
def test_seeds_that_agree(baseline: Baseline, rows: int) -> None:
    """A mean of equal numbers need not be that number, and another run may differ by a row."""
    for run in baseline.runs:
        run.metrics["accuracy"] = rows / 408
    for new in (rows, rows + 1):
        record = make_record(seed=60, metrics={"accuracy": new / 408, "f1": baseline.runs[0].metrics["f1"]})
        assert verdicts(baseline, record)["quality"].outcome == "holds"
    far = make_record(seed=60, metrics={"accuracy": (rows - 9) / 408, "f1": baseline.runs[0].metrics["f1"]})
    assert verdicts(baseline, far)["quality"].outcome == "fails"


@pytest.mark.parametrize(
    "others",
    [
        {"libraries": {**FINGERPRINT["libraries"], "full-training-harness": "9.9"}},
        {"python": "3.99.0"},
        {"cpus": 128},
    ],
    ids=lambda others: next(iter(others)),
)
def test_what_gives_no_other_bits_is_compared_exactly(baseline: Baseline, others: dict[str, Any]) -> None:
    assert verdicts(baseline, make_record(fingerprint=FINGERPRINT | others))["exact"].outcome == "holds"


def test_a_seed_outside_the_ball_park_is_recorded(folder: Path) -> None:
    check = "evaluate::in-the-documented-ball-park"
    finding = Finding(
        check=check, severity="error", update=None, where=None, message="m", expected="e", observed="o", hint="h"
    )
    for claim, recorded in (("ball-park", True), ("argmax", False)):
        result = CheckOutcome(check=check, stage="evaluate", claim=claim, outcome="fails", reason=None)
        record = make_record(60, findings=[finding], checks=[result])
        if recorded:
            stored.add(folder, record)
        else:
            with pytest.raises(CannotTry, match="has findings"):
                stored.add(folder, record)


def test_differences_name_their_keys() -> None:
    assert differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "d": 4}) == [
        "a.b 1 there, 3 here", "c 2 there, None here", "d None there, 4 here"
    ]  # fmt: skip


def test_accelerate_in_one_process_shares_the_plain_baseline(folder: Path, baseline: Baseline) -> None:
    """Its bits are the plain loop's; what several processes compute is not."""
    shared = make_record(recipe={"loop": "accelerate"})
    assert baseline_of(folder, shared) == folder / "tiny-plain-cpu.json"
    assert compare(baseline, [shared])[0].outcome == "holds"
    several = make_record(recipe={"loop": "accelerate", "processes": 2})
    assert baseline_of(folder, several) == folder / "tiny-accelerate-2-cpu.json"
    with pytest.raises(CannotTry, match=r"recipe\.loop is 'plain' in the baseline and 'accelerate' in the run"):
        compare(baseline, [several])
    own = folder / "tiny-accelerate-cpu.json"
    own.write_bytes((folder / "tiny-plain-cpu.json").read_bytes())
    assert baseline_of(folder, shared) == own
