"""The corpus as a whole: every check has its examples and a bug; the scripts are right; the record says so."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from harness import catalogue
from scripts.detection import KINDS
from scripts.record_pages import DETECTION
from tests.checks.conftest import must_be_as_said
from tests.checks.corpus import FOLDER, Case, all_cases
from tests.server import server_of
from tests.styles.test_styles import STYLES, cases_of

CASES = all_cases()
BY_EXAMPLES = {
    *(
        "inputs::numbered-apart",
        "inputs::scaled-with-evaluation-rows",
        "loss::target-past-the-end",
        "inputs::tools-not-shown",
        "metrics::not-a-number",
        "metrics::of-scaled-targets",
        "rows::augmented-alike",
        "saved::numbered-by-set",
        "rows::target-changes-alone",
    ),
    *("inputs::choices-apart", "inputs::same-tokens-masked", "inputs::wrong-decoder-start", "loss::target-is-noised"),
    *("metrics::generated-too-short", "metrics::scored-with-targets-given", "metrics::threshold-from-scored-rows"),
    *("metrics::mean-of-batches", "metrics::of-other-rows", "metrics::other-than-named"),
    *("gradients::clipped-while-scaled", "gradients::clips-nothing"),
    *("gradients::micro-batches-weigh-unlike", "gradients::same-rows-accumulated"),
    *("loss::right-among-wrong", "rows::windows-overlap", "weights::cast-before-update"),
    *("loss::flattened-apart", "metrics::ranked-by-classes", "metrics::threshold-of-probabilities"),
    *("model::hooks-skipped", "rows::loaders-apart"),
    *("ranks::clipped-before-averaging", "ranks::gradient-scaled", "ranks::tokens-weigh-unlike"),
    *("ranks::fewer-than-asked", "ranks::rows-divided-twice", "ranks::rows-shared", "ranks::weights-differ"),
    *("rows::changed-in-place", "rows::evaluation-augmented"),
    *("parameters::adapter-misses-weights", "saved::last-update-missing"),
    *("loss::half-precision", "model::documents-see-each-other", "model::reference-is-the-policy"),
    *("inputs::start-missing", "inputs::template-twice"),
    *("parameters::new-tokens-frozen", "inputs::preference-swapped"),
    *("saved::best-is-last", "saved::not-what-was-evaluated", "saved::tokenizer-otherwise"),
    *("loss::term-without-gradient", "loss::term-of-untrained-parameters", "loss::weight-rounded-to-zero"),
    *("loss::left-out", "loss::targets-not-signs", "loss::class-ignored"),
    *("loss::blank-taught", "loss::smoothed-twice", "rows::random-state-set-back"),
    *("loss::term-twice", "loss::too-short-for-targets"),
    *("loss::weights-of-other-classes", "loss::weights-for-frequent-classes", "parameters::adapter-frozen"),
    *("loss::ratio-always-one", "mode::teacher-in-train-mode", "mode::frozen-norm-drifts"),
    *("parameters::copy-shares-memory", "parameters::copy-never-follows", "parameters::copy-follows-too-fast"),
    *("parameters::copy-also-trained", "metrics::labels-on-another-scale", "inputs::standardised-apart"),
    *("inputs::evaluated-on-unknown-tokens", "rows::shuffled-apart", "rows::drawn-alike"),
    *("rows::test-rows-in-loss", "rows::tail-never-seen", "loss::term-always-zero"),
    *("optimizer::never-made", "rows::given-by-each-worker", "rows::rest-never-reached", "rows::skipped-in-each-epoch"),
    *("saved::before-training", "saved::not-what-was-trained", "saved::without-adapter", "schedule::decays-too-fast"),
    *("loss::differentiated-again", "loss::of-earlier-forward", "gradients::clipped-with-unused"),
    *("parameters::freezes-nothing", "parameters::not-registered", "parameters::unchanged"),
    *("weights::loaded-into-another", "weights::state-kept-without-copy", "inputs::wrong-masked-labels"),
    "parameters::copy-without-buffers",
}
"""Shown by their examples alone: it takes several processes (tests/watch/test_ranks.py), datasets that give tensors of
floating-point numbers, language models, averages, tokenizers, sums of losses, copies or batches by hand that none of
the nine scripts, nor those of other styles, has."""


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in CASES if case.kind == "as it is"], ids=lambda case: case.name)
def test_a_script_as_it_is_is_not_flagged(case: Case, pytestconfig: pytest.Config) -> None:
    if case.needed:
        pytest.skip(f"needs {' or '.join(case.needed)}")
    must_be_as_said(case, server_of(pytestconfig).watch(case))


def test_every_check_has_a_folder_with_examples_and_a_bug() -> None:
    folders = {f"{file.parent.parent.name}::{file.parent.name}" for file in FOLDER.glob("*/*/corpus.toml")}
    assert folders == set(catalogue.checks())
    of_styles = {case.check for style in STYLES for case, _ in cases_of(style) if case.kind == "bug"}
    assert {case.check for case in CASES if case.kind == "bug"} | of_styles == folders - BY_EXAMPLES
    for kind in ("bad", "good"):
        assert {case.check for case in CASES if case.kind == kind} == folders


def test_examples_and_edits_are_as_many_as_promised() -> None:
    counts = Counter(case.kind for case in CASES)
    assert counts["bug"] >= 111
    assert counts["right"] + counts["as it is"] >= 79
    names = [case.name for case in CASES if case.kind not in ("bad", "good")]
    assert len(set(names)) == len(names)


def test_the_record_is_of_this_corpus() -> None:
    """``python -m scripts.detection`` writes it; each test of a folder holds its entry against what is found. What is
    newer than the record is recorded with the next release."""
    kept = json.loads(DETECTION.read_text())
    for entries in set(KINDS.values()):
        mine = {case.name for case in CASES if KINDS.get(case.kind) == entries}
        assert {entry["name"] for entry in kept[entries]} <= mine
        assert len(kept[entries]) > 0.9 * len(mine), "python -m scripts.detection records the others"
    checks = {case.name: case.check for case in CASES if case.kind == "bug"}
    assert {entry["name"]: entry["check"] for entry in kept["mutants"]}.items() <= checks.items()
