"""Baselines that an earlier version wrote: they are read, and equal what is kept today."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.baseline.formerly import FORMULAS, fact_today
from harness.baseline.training_file import read, text_of
from harness.baseline.trainings import verdict
from harness.describe.description import Line
from harness.watch.facts import formula as formulas
from harness.watch.facts.formula import Formula, formula
from tests.baseline.test_trainings import MACHINE, run, stored

KEY = "metric.reported.accuracy.by_bits"

FORMERLY = [
    (formula("share", over="hits", hits=15, targets=20), "# of # targets"),
    (formula("exponential", formula("mean", targets=20)), "the exponential of the mean over # targets"),
    (formula("class", number=1), "of class #"),
    (formula("exchanged-precision", formula("macro")), "the precision# macro"),
    (formula("mean-of-values", formula("class", number=1), batches=4), "the mean of # batches' values# of class #"),
    (formula("training-mean", over="report", losses=8), "the mean of the # training losses since the last report"),
    (
        formula("threshold-of-probabilities", formula("share", over="hits", hits=3, targets=9)),
        "# of # with a threshold of # on scores that are no probabilities",
    ),
    (
        formula("wrong-axis", formula("class", number=2)),
        "that of class # with the likeliest place in the place of the likeliest class",
    ),
]


def reported(by: object) -> Line:
    return Line("metric", "reported: accuracy 0.75", {KEY: by, "metric.reported.accuracy.times": 2})


@pytest.mark.parametrize(("of", "sentence"), FORMERLY, ids=[each.key for each, _ in FORMERLY])
def test_a_sentence_of_a_baseline_is_its_formula(of: Formula, sentence: str) -> None:
    assert fact_today(KEY, sentence) == of.key
    assert fact_today("data.train.reported_by", sentence) == sentence


def test_an_old_baseline_is_equal_to_a_run_of_today(tmp_path: Path) -> None:
    path, key = tmp_path / "small.txt", FORMERLY[0][0].key
    text = text_of(stored(facts={**stored().facts, KEY: key, "metric.reported.accuracy.times": 2}), "small")
    path.write_text(text.replace(f'"{key}"', f'"{FORMERLY[0][1]}"'))
    assert '"# of # targets"' in path.read_text()
    now = run()
    assert not verdict("small", read(path, "small"), replace(now, lines=[*now.lines, reported(key)]), MACHINE).failed
    other = replace(now, lines=[*now.lines, reported("share:agrees")])
    assert list(verdict("small", read(path, "small"), other, MACHINE).changed) == ["metric"]


def test_another_wording_changes_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    of = formula("exponential", formula("mean", targets=20))
    assert str(of) == "the exponential of the mean over 20 targets"
    monkeypatch.setitem(formulas.WORDS, "mean", "averaged over {targets} labels")
    assert (str(of), of.key) == ("the exponential of averaged over 20 labels", "exponential(mean)")


def test_every_key_that_a_sentence_became_is_still_one() -> None:
    inner = {part for key in FORMULAS.values() for part in key.rstrip(")").split("(")}
    assert {part.partition(":")[0] for part in inner} <= set(formulas.WORDS)
    streams = {part.partition(":")[2] for part in inner} - {""}
    assert streams <= {*formulas.STREAMS, *formulas.TRAINED}


def test_the_simplest_of_several_formulas_is_said() -> None:
    trained = formula("training-mean", over="pass", losses=8)
    simple, other = formula("mean", targets=20), formula("mean-of-means", batches=5)
    assert sorted([trained, other, simple], key=lambda each: each.rank) == [simple, other, trained]
