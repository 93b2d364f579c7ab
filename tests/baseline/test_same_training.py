"""How two runs compare that have to take the same steps: by hand, without a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.baseline import same_training
from harness.baseline.same_training import Apart, SameTrainingReport, WayReport, compared
from harness.baseline.trainings import Crashed
from harness.describe.description import Description, Line
from harness.errors import CannotTry
from harness.report.same_training import same_training_lines
from harness.settings import Training, Way

NORM = "gradient_norm.AdamW"


def run(*losses: float, norm: float = 1.0, **facts: Any) -> Description:
    own = {key.replace("__", "."): value for key, value in facts.items()}
    numbers = {"loss": [*losses, 0.5], NORM: [norm] * len(losses)}
    return Description("train.py", 8, [Line("update", "8 updates", {"update.AdamW.steps": 8, **own})], numbers)


def test_rounding_is_the_same() -> None:
    found = compared(run(1.0, 0.9), run(1.0, 0.9005, norm=1.02), Way())
    assert (found.apart, found.updates) == ([], 2)
    assert found.largest == {"loss": pytest.approx(5e-4), NORM: pytest.approx(0.02)}


@pytest.mark.parametrize(
    ("losses", "update", "times"),
    [((2.0, 1.8), 1, "2"), ((0.25, 0.225), 1, "1/4"), ((1.0, 0.99), 2, None), ((1.0008, 0.9008), 1, None)],
)
def test_the_first_update_and_the_factor_are_named(losses: tuple[float, ...], update: int, times: str | None) -> None:
    (apart,) = compared(run(1.0, 0.9), run(*losses), Way()).apart
    assert (apart.key, apart.update, apart.times) == ("loss", update, times)


def test_a_number_that_is_none_is_apart() -> None:
    (apart,) = compared(run(1.0, 0.9), run(1.0, float("nan")), Way()).apart
    assert (apart.update, apart.times) == (2, None)


def test_settings_are_the_same_exactly_and_targets_in_one_process() -> None:
    one, other = run(1.0, update__AdamW__stale=0, loss__ce__counted=64), run(1.0, update__AdamW__stale=1)
    other.lines[0].facts["loss.ce.counted"] = 32  # type: ignore[index]
    stale, counted = Apart("update.AdamW.stale", 0, 1), Apart("loss.ce.counted", 64, 32)
    assert compared(one, other, Way()).apart == [stale, counted]
    assert compared(one, other, Way(processes=2)).apart == [stale]


@pytest.mark.parametrize(("norm", "said"), [(0.0, "which proves nothing"), (float("nan"), "which proves nothing")])
def test_a_dead_run_proves_nothing(norm: float, said: str) -> None:
    found = compared(run(1.0, norm=norm), run(1.0, norm=norm), Way())
    assert (found.apart, [*found.largest]) == ([], ["loss"])
    assert said in found.not_judged[0]


def test_a_number_that_the_other_run_lacks_is_not_judged() -> None:
    other = run(1.0)
    del other.numbers[NORM]
    assert compared(run(1.0), other, Way()).not_judged == [f"{NORM}: not in the other run"]


def test_dropout_is_not_judged() -> None:
    found = compared(run(1.0, model__Net__training__active=[0]), run(3.0, model__Net__training__active=[2]), Way())
    assert not found.apart
    assert "set dropout to 0" in found.not_judged[0]


def test_half_precision_is_coarser() -> None:
    half = run(1.0, model__Net__training__autocast="bfloat16")
    assert not compared(half, run(1.006), Way()).apart
    assert compared(half, run(1.02), Way()).apart


@pytest.mark.parametrize(
    ("steps", "way", "hinted"),
    [(8, Way(processes=2), False), (4, Way(processes=2), True), (4, Way(("--batch", "16")), False)],
)
def test_processes_that_take_batches_of_their_own_are_named(steps: int, way: Way, hinted: bool) -> None:
    found = compared(run(1.0), run(1.0, update__AdamW__steps=steps), way)
    assert (found.hint is not None) == hinted
    lines = list(same_training_lines(SameTrainingReport("train.py", "train.py --lr 1", [found])))
    assert lines[0] == "train.py --lr 1", "the script is named once"
    assert any("reads full batches of its own" in line for line in lines) == hinted


def test_a_training_of_a_name_has_it_before_its_command() -> None:
    first, *_ = same_training_lines(SameTrainingReport("small", "train.py", [WayReport("--batch 4")]))
    assert first == "small: train.py"


@pytest.mark.parametrize(("said", "started"), [("KeyError: 'RANK'", [None, 1, 2]), ("KeyError: 'lr'", [None])])
def test_the_run_in_one_process_gets_a_launcher_where_it_wants_one(
    said: str, started: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[int | None] = []

    def described(training: Training, folder: Path, way: Way | None = None) -> Description:
        ways.append(way.processes if way else None)
        if way is None:
            raise Crashed("training train.py crashed", said)
        return run(1.0)

    monkeypatch.setattr(same_training, "described", described)
    training = Training("train.py", ["train.py"], [Way(processes=2)])
    if len(started) > 1:
        assert not same_training.same_training(training, Path()).failed
    else:
        with pytest.raises(CannotTry, match="crashed"):
            same_training.same_training(training, Path())
    assert ways == started
