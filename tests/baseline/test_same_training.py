"""How two runs compare that have to take the same steps: by hand, without a script."""

from __future__ import annotations

from typing import Any

import pytest

from harness.baseline.same_training import Apart, compared
from harness.describe.lines import Line
from harness.describe.page import Description
from harness.settings import Way

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
