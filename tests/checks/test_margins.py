"""What scripts.margins turns, on which scripts, and what it makes of that."""

from __future__ import annotations

import ast
import itertools
import json
from typing import Any

import pytest

from scripts import margins
from scripts.margins import Constant, concerned, constants, importers, measured, name_of, stands_on, summed, updated
from scripts.record_pages import MARGINS
from tests.checks.corpus import all_cases
from tests.server import server_of

CASES = {name_of(case): case for case in all_cases()}
MOST_UNMEASURED = 12
"""Constants that may be new, or have another value than when all were measured: then it is time to do so again."""


@pytest.mark.parametrize(
    ("value", "half", "double"),
    [
        (8, 4, 16),
        (1, 1, 2),
        (0.02, 0.01, 0.04),
        (0.5, 0.75, 0.0),
        (0.9, 0.95, 0.8),
        (2.0, 1.0, 4.0),
        (2**31, 2**30, 2**32),
    ],
)
def test_what_half_and_double_is(value: float, half: float, double: float) -> None:
    constant = Constant("harness.watch.facts.any", "ANY", value)
    assert constant.turned("halved") == pytest.approx(half)
    assert constant.turned("doubled") == pytest.approx(double)
    assert isinstance(constant.turned("halved"), type(value))


def test_constants_are_found_where_they_are_made_and_where_they_are_imported() -> None:
    names = [str(each) for each in constants()]
    assert len(names) == len(set(names)) > 250
    assert "facts.scheduler_ledger.FEWEST_STEPS" in names
    assert not any(name.endswith("IGNORED") for name in names)  # a label, and no amount
    holders = importers()["harness.watch.facts.scheduler_ledger", "FEWEST_STEPS"]
    assert {"harness.watch.facts.scheduler_ledger", "harness.watch.checks.schedule.length"} <= set(holders)


def test_a_check_stands_on_the_facts_of_its_facts() -> None:
    modules = stands_on("schedule::warmup-never-ends")
    assert {"harness.watch.facts.scheduler_ledger", "harness.watch.facts.schedules"} <= modules
    assert not any("checks.rows" in each for each in modules)
    bug, right = CASES["schedule::warmup-never-ends/bad.py"], CASES["schedule::warmup-never-ends/good.py"]
    assert len(concerned(bug)) < len(concerned(right)) == len(constants())


@pytest.mark.slow
def test_a_constant_that_decides_is_found_among_many(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES["loss::weights-of-other-classes/bad.py"]
    decides = Constant(
        "harness.watch.checks.loss.observations.class_weights", "MIN_TARGETS", 2000
    )  # doubled, there are too few
    others = [each for each in concerned(case) if each.name != "MIN_TARGETS"][:6]
    monkeypatch.setattr(margins, "concerned", lambda case: [*others, decides])
    found = measured(server_of(pytestconfig), case)
    assert found == {"halved": [], "doubled": ["checks.loss.observations.class_weights.MIN_TARGETS"]}


def test_scripts_are_counted_by_constant() -> None:
    one, other, *_ = map(str, constants())
    table: dict[str, Any] = summed(
        {"a": {"halved": [one], "doubled": []}, "b": {"halved": [one, "facts.gone.X"], "doubled": [other]}}
    )
    assert table["scripts"] == 2
    assert (table["constants"][one]["halved"], table["constants"][other]["doubled"]) == (["a", "b"], ["b"])


def test_a_constant_that_was_not_measured_stays_out_of_the_record() -> None:
    one, other, third, *_ = constants()
    found = {str(constant): {"value": 2} for constant in (one, other, third)}
    recorded = {str(one): {"value": 1}, str(other): {"value": 1}, "facts.gone.X": {"value": 1}}
    assert updated(recorded, found, [other]) == {str(one): {"value": 1}, str(other): {"value": 2}}


def test_nearly_all_constants_were_measured_as_they_are() -> None:
    assert len(margins.unmeasured()) <= MOST_UNMEASURED


DECIDES = "Half or double of it changes verdicts"


def test_what_a_constant_says_of_itself_was_measured() -> None:
    """A docstring gives the reason for a number, and no guess; that it decides was seen in the table."""
    recorded = json.loads(MARGINS.read_text(encoding="utf-8"))["constants"]
    says = {}
    for file in sorted(margins.WATCH.rglob("*.py")):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        module = ".".join(file.relative_to(margins.WATCH).with_suffix("").parts)
        for statement, after in itertools.pairwise(body):
            match statement, after:
                case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                    says[f"{module}.{name}"] = " ".join(text.split())
    assert not [name for name, text in says.items() if "guess" in text.lower()]
    inert = [name for name, measured in recorded.items() if not (measured["halved"] or measured["doubled"])]
    assert not [name for name in inert if DECIDES in says.get(name, "")]
