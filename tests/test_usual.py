"""How scripts.usual counts facts by project, and compares a training with no twin of its own."""

from __future__ import annotations

from typing import Any

from harness.describe.unusual import LANGUAGE_MODELS, TRAININGS
from scripts.usual import facts_in, page_of, table_of, validated


def line(mode: str, graph: str) -> dict[str, Any]:
    facts = {"calls": 6, "modes": [mode], "graph": graph, "active": [0], "rounds": 1, "after_updates": [60, 60]}
    return {
        "section": "evaluation",
        "text": "Net called 6 times",
        "facts": {f"evaluation.Net.{key}": value for key, value in facts.items()},
    }


EVAL, TRAIN = line("eval", "without gradients"), line("train", "with a graph")
IN_EVAL_MODE = "an evaluation in eval mode, without gradients"
IN_TRAIN_MODE = "an evaluation in train mode, with a graph"


def entries(usual: int, *rare: str) -> list[dict[str, Any]]:
    """So many correct projects that evaluate as usual, and others that do not, by their names."""
    of = [(f"project {number}", EVAL) for number in range(usual)] + [(name, TRAIN) for name in rare]
    return [{"project": name, "part": name, "lines": [each]} for name, each in of]


def test_a_fact_is_known_by_its_words_and_its_group() -> None:
    assert facts_in([EVAL, TRAIN]) == {(TRAININGS, IN_EVAL_MODE), (TRAININGS, IN_TRAIN_MODE)}


def test_a_project_counts_once_however_many_programs_it_has() -> None:
    table = table_of(entries(3, "twins", "twins"))
    assert table[TRAININGS].projects == 4
    assert table[TRAININGS].facts == {IN_EVAL_MODE: 3, IN_TRAIN_MODE: 1}
    assert table[LANGUAGE_MODELS].projects == 0


def test_a_training_is_not_compared_with_its_own_twin() -> None:
    assert validated(entries(120, "twins", "twins"), by="project") == {"marks": 2, "without": 120, "trainings": 122}
    two_of_102 = validated(entries(100, "one", "other"), by="project")
    assert two_of_102 == {"marks": 2, "without": 100, "trainings": 102}
    four_of_104 = validated(entries(100, "one", "two", "three", "four"), by="project")
    assert four_of_104["marks"] == 0


def test_few_projects_mark_nothing() -> None:
    assert validated(entries(60, "one"), by="project")["marks"] == 0


def test_the_page_has_counts_and_no_name() -> None:
    known = entries(100, "a name")
    page = page_of(table_of(known), {"project": validated(known, by="project")})
    assert f"| {IN_TRAIN_MODE} | {TRAININGS} | 1 of 101 |" in page
    assert "a name" not in page
    assert "0.01 lines a training; 99% of 101 correct trainings have none" in page
