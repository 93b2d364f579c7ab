"""Marks of what hardly any correct training does: which facts are judged, when one is rare, and where it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.describe.description import Description, Line
from harness.describe.judged import judged, share
from harness.describe.lines import line
from harness.describe.unusual import ENOUGH, LANGUAGE_MODELS, TRAININGS, Usual, rarest, unusual, usual
from harness.findings import Unusual
from harness.report.check import outcome_lines
from harness.settings import WatchOptions, unless_ignored, wants_unusual
from harness.watch.script import CheckReport

ASKED = {
    "calls": 4,
    "modes": ["eval"],
    "graph": "without gradients",
    "active": [0],
    "rounds": 1,
    "after_updates": [8, 8],
}
UPDATE = {
    "steps": 10, "backward_passes": {"1": 10}, "closures": 0, "stale": 0, "empty": 0, "without_gradient": [],
    "clipped": {"not clipped": 10}, "clips": [0], "clipped_scaled": False, "scale": ["none"], "skipped": 0,
    "state_lost": 0,
}  # fmt: skip
TRAINED = {"mode": ["train"], "autocast": None, "dropout_and_norms": 2, "active": [2]}
PASSES = {
    "rows": 32,
    "batch_size": 8,
    "batches": 4,
    "order": "shuffled anew each time",
    "passes": 3,
    "passes_to_the_end": 3,
}
TAUGHT = {"rows": 8, "tokens": 80, "padding": 0, "taught": 40, "rows_without": 0, "last_token": 8, "second_token": 0}
RATE = {"first": 0.1, "largest": 0.1, "last": 0.0, "by": "LinearLR", "times": 10, "course": [1.0, 0.5, 0.0]}

CASES: list[tuple[str, str, dict[str, Any], str]] = [
    ("evaluation", "Net", ASKED, "an evaluation in eval mode, without gradients"),
    ("evaluation", "Net", ASKED | {"modes": ["train"], "active": [2], "graph": "with a graph"},
     "an evaluation in train mode, with dropout or batch statistics active, with a graph"),
    ("evaluation", "Net", ASKED | {"after_updates": [0, 0]}, "an evaluation before the training alone"),
    ("update", "SGD", UPDATE | {"stale": 9}, "updates with gradients of an earlier one: most"),
    ("update", "SGD", UPDATE | {"empty": 10}, "updates without a gradient: all"),
    ("update", "SGD", UPDATE | {"cleared_unused": 10, "moved_before_cleared": 0},
     "gradients that are cleared unused: some"),
    ("update", "SGD", UPDATE | {"backward_passes": {"1": 5, "2": 5}},
     "updates of a changing number of backward passes, often"),
    ("update", "SGD", UPDATE | {"without_gradient": ["a"]},
     "trainable tensors that never have a gradient other than 0"),
    ("update", "SGD", UPDATE | {"clipped": {"norm clipped to 0": 10}}, "gradients clipped to 0, or to no limit"),
    ("update", "SGD", UPDATE | {"clipped": {"norm clipped to 1": 9, "not clipped": 1}},
     "gradients clipped in some updates alone"),
    ("update", "SGD", UPDATE | {"clips": [2]}, "gradients clipped several times for an update"),
    ("update", "SGD", UPDATE | {"scale": ["carried"]}, "gradients that have a GradScaler's factor where they are used"),
    ("update", "SGD", UPDATE | {"skipped": 10}, "updates left out by a GradScaler: some"),
    ("update", "SGD", UPDATE | {"state_lost": 3}, "steps that lose the optimizer's state"),
    ("model", "Net", {"unchanged": ["norm.weight"]}, "trainable tensors that never change"),
    ("model", "Net", {"frozen_changed": ["norm.weight"]}, "frozen tensors that change"),
    ("model", "Net", {"changed_between": ["norm.weight"]}, "tensors that something else than an optimizer changes"),
    ("model", "Net", {"parameters": 8, "in_no_optimizer": True}, "a model that is differentiated and in no optimizer"),
    ("model", "Net.training", TRAINED | {"mode": ["eval"], "active": [0]}, "trained in eval mode"),
    ("model", "Net.training", TRAINED | {"active": [0, 2]}, "trained with a changing number of active modules"),
    ("model", "Net", {"parameters": 8, "modes": ["train"]}, "a model that is never trained, in train mode"),
    ("model", "Net.adapter.a", {"modules": 0, "absent": ["q"]}, "an adapter in no module"),
    ("model", "copy.target", {"shares": []}, "a copy of a trained network that drifts from it"),
    ("data", "train", PASSES | {"order": "in order"}, "training batches: in order"),
    ("data", "train", PASSES | {"passes_to_the_end": 0}, "training passes: none of them to the end"),
    ("data", "train", PASSES | {"rows_each_pass": [31, 31], "twice_in_a_pass": True},
     "training passes: give most of the rows"),
    ("data", "evaluation", PASSES | {"last_batch": "dropped"}, "evaluation passes: the last batch is dropped"),
    ("data", "unread", {"rows": 8}, "a DataLoader is never read"),
    ("data", "Net", {"given": 8, "different": 4, "times_each": [1, 5]}, "training rows: come unevenly"),
    ("data", "Net.asked", {"rows": 8, "different": 8, "trained_on_too": 8}, "evaluated rows: all of them trained on"),
    ("data", "preparing.filter", {"rows": 8, "kept": 0}, "a filter keeps no row"),
    ("taught", "", TAUGHT | {"last_token": 0}, "rows of tokens: the last token of none of them taught"),
    ("loss", "mse_loss", {"weight": -1.0, "counted": 8, "ignored": 0}, "a loss function: its value is subtracted"),
    ("loss", "mse_loss", {"weight": None, "counted": 8, "ignored": 0},
     "a loss function: its value is never differentiated"),
    ("loss", "cross_entropy", {"counted": 1, "ignored": 99}, "a loss function: most targets ignored"),
    ("loss", "cross_entropy", {"counted": 8, "ignored": 0, "weightless": 8},
     "a loss function: all targets with a weight of 0"),
    ("loss", "cross_entropy", {"counted": 8, "ignored": 0, "classes": {"1": 8}},
     "a loss function: all targets of one class"),
    ("loss", "", {"share_of_the_mean": 0.25}, "what is differentiated, beside the mean over the targets: less"),
    ("loss", "", {"not_finite": 2}, "a loss that is not finite"),
    ("loaded", "Net", {"after": [5, 5], "entries": 8, "missing": 0, "unexpected": 0},
     "a state is loaded in the middle of the training"),
    ("optimizer", "SGD", {"in_none": ["a"]}, "trainable tensors in no optimizer"),
    ("optimizer", "SGD", {"group_1.lr": 0.0, "group_1.weight_decay": 0.0}, "a learning rate of 0"),
    ("schedule", "SGD", RATE, "the learning rate ends at 0"),
    ("schedule", "SGD", RATE | {"last": -0.1, "course": [1.0, 0.0, -1.0]}, "a learning rate that becomes negative"),
    ("schedule", "SGD", RATE | {"course": [1.0, 0.1, 0.9]}, "a learning rate that rises again"),
    ("schedule", "SGD", RATE | {"last": 0.1, "course": [1.0, 1.0], "times": 0}, "a scheduler that is never stepped"),
    ("schedule", "SGD", RATE | {"groups": {"1": [1, 0.5], "2": [1, 1]}},
     "groups whose learning rates move in some alone"),
    ("metric", "accuracy", {"references": {"1": 8}}, "a metric whose labels are all of one class"),
    ("metric", "by_hand.every_pair", {"of": {"rows float32": 4}}, "each number compared with each of the other"),
    ("metric", "reported.loss", {"by_bits": "unknown", "times": 3}, "a reported number that is not known"),
    ("saved", "1", {"untouched": True, "current": False}, "saved weights that the training began with"),
    ("saved", "1", {"untouched": False, "current": False}, "saved weights that the model does not have then"),
    ("saved", "1", {"again": "gives other answers"}, "a saved model that gives other answers when it is loaded again"),
    ("saved", "", {"other_than_evaluated": True}, "no saved state has the weights that were evaluated last"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "of", "facts", "expected"), CASES, ids=lambda value: str(value)[:40])
def test_what_is_judged(section: str, of: str, facts: dict[str, Any], expected: str) -> None:
    assert expected in list(judged(line(section, "text", facts, of=of)))


def test_an_ordinary_line_has_no_fact_that_is_rare_of_itself() -> None:
    assert list(judged(line("update", "text", UPDATE, of="SGD"))) == []
    assert list(judged(Line("randomness", "seeded"))) == []


@pytest.mark.parametrize(
    ("part", "word"), [(0, "none"), (1, "few"), (10, "some"), (89, "some"), (90, "most"), (99, "most"), (100, "all")]
)
def test_how_much_a_part_is(part: int, word: str) -> None:
    assert share(part, 100) == word


EVAL = line("evaluation", "Net called 4 times", ASKED, f"{__file__}:1", of="Net")
FACT = "an evaluation in eval mode, without gradients"


@pytest.mark.parametrize(
    ("projects", "having", "marked"),
    [(ENOUGH, 0, True), (ENOUGH, 1, True), (ENOUGH, 2, False), (ENOUGH - 1, 0, False), (10 * ENOUGH, 10, True)],
)
def test_a_fact_is_marked_if_hardly_any_has_it(projects: int, having: int, *, marked: bool) -> None:
    table = {TRAININGS: Usual(projects, {FACT: having})}
    marks = [Unusual("evaluation", EVAL.text, FACT, having, projects, EVAL.where)]
    assert list(unusual([EVAL], table)) == (marks if marked else [])


def test_what_is_taught_is_compared_among_language_models() -> None:
    taught = line("taught", "8 rows", TAUGHT)
    assert list(unusual([taught], {TRAININGS: Usual(1000, {})})) == []
    (mark,) = unusual([taught], {LANGUAGE_MODELS: Usual(1000, {})})
    assert (mark.projects, mark.of) == (0, 1000)


def test_the_table_of_the_package_is_large_enough_and_knows_the_list() -> None:
    known = usual()[TRAININGS]
    assert known.projects >= ENOUGH
    assert known.facts[FACT] > 0.2 * known.projects
    assert not known.is_rare(FACT)
    facts = {fact for *about, expected in CASES for fact in [expected] if about[0] != "taught"}
    assert len({*known.facts} & facts) > 20, "words of the list were changed: python -m scripts.usual JOURNAL"


MARK = Unusual("evaluation", "Net called 4 times", FACT, 1, 400)


def test_the_page_shows_the_mark_behind_its_line() -> None:
    page = Description("train.py", lines=[Line("evaluation", "Net called 4 times"), Line("saved", "nothing")])
    page.unusual = [MARK]
    assert page.as_dict()["unusual"][0]["projects"] == 1
    text = str(page).splitlines()
    assert text[0].endswith("Net called 4 times  [unusual: 1 of 400 correct trainings]")
    assert "unusual" not in text[1]


def test_check_shows_the_rarest_and_is_no_failure() -> None:
    marks = [Unusual("data", f"line {number}", FACT, number, 400) for number in (4, 1, 0, 2)]
    report = CheckReport(
        "train.py", updates=8, unusual=rarest(marks), seconds={"before the first batch": 0, "in all": 1}
    )
    lines = list(outcome_lines(report))
    at = lines.index("  worth a look (harness explain unusual):")
    assert [each.split(" [")[0] for each in lines[at + 1 : at + 4]] == [
        "    data: line 1",
        "    data: line 0",
        "    data: line 2",
    ]
    assert not report.failed
    assert "worth a look" not in "\n".join(outcome_lines(report, quiet=True))


def test_marks_are_switched_off(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("model.train()  # harness: ignore[unusual]\nmodel.eval()\n")
    marks = [Unusual("model", "a", FACT, 1, 400, f"{script}:{number}") for number in (1, 2)]
    assert list(unless_ignored(marks)) == marks[1:]
    assert wants_unusual(script, WatchOptions())
    assert wants_unusual(script, WatchOptions(select=("rows", "unusual")))
    assert not wants_unusual(script, WatchOptions(ignore=("unusual",)))
    assert not wants_unusual(script, WatchOptions(select=("rows",)))
    (tmp_path / "pyproject.toml").write_text('[tool.harness]\nignore = ["unusual"]\n')
    assert not wants_unusual(script, WatchOptions())
