"""Baselines are recorded seed by seed, accepted for a reason, and read with distrust."""

from __future__ import annotations

import hashlib
import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.documented_run.baseline import review, stored
from harness.documented_run.baseline.sessions import OF_ANY_MACHINE
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.record import Provenance
from harness.errors import CannotTry
from tests.baseline.conftest import FINGERPRINT, UPDATES, make_record

FILE = "tiny-plain-cpu.json"


def test_round_trip_keeps_every_bit(folder: Path) -> None:
    baseline = Baseline.read(folder / FILE)
    assert [run.seed for run in baseline.runs] == list(range(42, 52))
    for run in baseline.runs:
        assert run.curve == make_record(run.seed).curves.loss
    before = (folder / FILE).read_bytes()
    baseline.write(folder / FILE)
    assert (folder / FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("norms", "kept"),
    [
        ([1.234567, 0.000123456] * (UPDATES // 2), [1.235, 0.0001235] * (UPDATES // 2)),
        ([1.0] * (UPDATES - 1) + [math.inf], None),
        ([1.0], None),
    ],
    ids=["as many digits as a chart shows", "infinite", "too few"],
)
def test_gradient_norms_are_kept_where_there_are_all(tmp_path: Path, norms: list[float], kept: Any) -> None:
    curves = make_record().curves.model_copy(update={"grad_norm": norms})
    path = stored.add(tmp_path, make_record(curves=curves))
    assert Baseline.read(path).runs[0].grad_norm == kept
    assert ("grad_norm" in path.read_text()) == (kept is not None), "files of before stay as they are"


def test_gradient_norms_of_other_updates_are_refused(folder: Path) -> None:
    values = json.loads((folder / FILE).read_text())
    values["runs"][3]["grad_norm"].append(1.0)
    (folder / FILE).write_text(json.dumps(values))
    with pytest.raises(CannotTry, match=f"grad_norm has {UPDATES + 1} values for {UPDATES} updates"):
        Baseline.read(folder / FILE)


def test_recording_writes_candidates_only(folder: Path) -> None:
    before = (folder / FILE).read_bytes()
    path = stored.add(folder, make_record(60))
    assert path == folder / "candidates" / FILE
    assert (folder / FILE).read_bytes() == before
    assert [run.seed for run in Baseline.read(path).runs] == [60]


def test_accepting_keeps_reason_and_hash(folder: Path) -> None:
    old = hashlib.sha256((folder / FILE).read_bytes()).hexdigest()
    for seed in range(60, 70):
        stored.add(folder, make_record(seed))
    review.accept(folder, "tiny-plain-cpu", " another generator ")
    new = Baseline.read(folder / FILE)
    assert (new.reason, new.replaces) == ("another generator", old)
    assert not (folder / "candidates" / FILE).exists()


def test_accepting_needs_a_reason_and_a_candidate(folder: Path) -> None:
    stored.add(folder, make_record(60))
    with pytest.raises(CannotTry, match="give one with --reason"):
        review.accept(folder, "tiny-plain-cpu", "  ")
    with pytest.raises(CannotTry, match=r"candidates.*bert-base-plain-cpu\.json not found"):
        review.accept(folder, "bert-base-plain-cpu", "because")


def test_accepting_never_makes_a_baseline_poorer(folder: Path, tmp_path: Path) -> None:
    stored.add(folder, make_record(60))
    with pytest.raises(CannotTry, match="has 1 seed, expected 10 or more, as many as the baseline"):
        review.accept(folder, "tiny-plain-cpu", "because")
    stored.add(tmp_path / "new", make_record(60))
    with pytest.raises(CannotTry, match="has 1 seed, expected 2 or more, which have a spread"):
        review.accept(tmp_path / "new", "tiny-plain-cpu", "because")


@pytest.mark.parametrize("name", ["../other", "/absolute", "team/other"])
def test_names_are_no_paths(folder: Path, name: str) -> None:
    with pytest.raises(CannotTry, match="a baseline has a name such as tiny-plain-cpu"):
        review.accept(folder, name, "because")
    path = stored.add(folder, make_record(60, recipe={"name": name}))
    assert path.parent == folder / "candidates"


def test_what_several_machines_recorded_is_one_candidate(tmp_path: Path) -> None:
    """As one machine would have written it, each seed with its own fingerprint."""
    for seed in (42, 43, 44):
        made = make_record(seed, fingerprint=FINGERPRINT | {"cpu": f"of machine {seed % 2}"})
        alone = stored.add(tmp_path / "one", made)
        stored.add(tmp_path / f"{seed % 2}", made)
    for machine in ("1", "0", "1"):
        merged = stored.merge(tmp_path / "merged", Baseline.read(tmp_path / machine / "candidates" / FILE))
    assert merged.read_bytes() == alone.read_bytes()
    assert [run.fingerprint["cpu"][-1] for run in Baseline.read(merged).runs] == ["0", "1", "0"]


def test_a_baseline_is_merged_as_a_candidate(folder: Path) -> None:
    merged = Baseline.read(stored.merge(folder, Baseline.read(folder / FILE)))
    assert (merged.reason, merged.replaces, len(merged.runs)) == (None, None, 10)


def test_seeds_of_other_data_are_not_merged(folder: Path, tmp_path: Path) -> None:
    other = stored.add(tmp_path / "other", make_record(60, inputs={"data": "e" * 64, "checkpoint": "c" * 64}))
    stored.add(folder, make_record(42))
    with pytest.raises(CannotTry, match="has a different inputs"):
        stored.merge(folder, Baseline.read(other))


@pytest.mark.parametrize(
    ("changes", "here", "anywhere"),
    [
        ({}, True, True),
        ({"cpu": "b", "threads": 7}, False, True),
        ({"libraries": {"torch": "2.14.0"}}, False, False),
    ],
)
def test_which_seeds_are_recorded_already(tmp_path: Path, changes: dict[str, Any], here: bool, anywhere: bool) -> None:
    """On one machine those of this one; on a cluster those of any that has the same versions."""
    stored.add(tmp_path, make_record(42, fingerprint=FINGERPRINT | changes))
    start = make_record(43)
    assert stored.recorded_already(tmp_path, start) == ({42} if here else set())
    assert stored.recorded_already(tmp_path, start, facts=OF_ANY_MACHINE) == ({42} if anywhere else set())


def test_a_seed_is_replaced(tmp_path: Path) -> None:
    stored.add(tmp_path, make_record(42))
    path = stored.add(tmp_path, make_record(42, weights="f" * 16))
    assert [run.weights for run in Baseline.read(path).runs] == ["f" * 16]


def test_only_what_this_very_code_recorded_here_is_taken_for_done(tmp_path: Path) -> None:
    start = make_record()
    assert stored.recorded_already(tmp_path, start) == set()
    stored.add(tmp_path, make_record(42))
    assert stored.recorded_already(tmp_path, start) == {42}
    for changes in (
        {"fingerprint": FINGERPRINT | {"cpu": "b"}},
        {"provenance": Provenance(commit="b" * 40, dirty=False)},
        {"provenance": Provenance(commit="a" * 40, dirty=True)},
    ):
        assert stored.recorded_already(tmp_path, make_record(**changes)) == set()
    with pytest.raises(CannotTry, match="has a different inputs"):
        stored.recorded_already(tmp_path, make_record(inputs={"data": "e" * 64}))


def test_many_record_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seed: stored.add(tmp_path, make_record(seed)), range(40)))
    runs = Baseline.read(tmp_path / "candidates" / FILE).runs
    assert [run.seed for run in runs] == list(range(40))


@pytest.mark.parametrize(
    "changes", [{"recipe": {"lr": 3e-5}}, {"inputs": {"data": "e" * 64, "checkpoint": "c" * 64}}], ids=str
)
def test_a_candidate_is_of_one_thing(tmp_path: Path, changes: dict[str, Any]) -> None:
    stored.add(tmp_path, make_record(42))
    with pytest.raises(CannotTry, match=f"has a different {next(iter(changes))}: expected"):
        stored.add(tmp_path, make_record(43, **changes))


def changed(**values: Any) -> Any:
    return lambda content: content | values


def first_run(**values: Any) -> Any:
    return lambda content: content | {"runs": [content["runs"][0] | values, *content["runs"][1:]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(schema=2), r"schema: Input should be 1 \(of a newer harness\?\)"),
        (changed(runs=[]), "runs: List should have at least 1 item"),
        (changed(recipe={}), "the file: recipe has no name"),
        (changed(surprise=1), "surprise: Extra inputs are not permitted"),
        (lambda content: {key: value for key, value in content.items() if key != "inputs"}, "inputs: Field required"),
        (lambda content: content | {"runs": content["runs"] * 2}, "the file: a seed occurs twice"),
        (first_run(accuracy=1.5), r"runs\.0\.metrics: accuracy is 1\.5; expected 0 to 1"),
        (first_run(accuracy=None), r"runs\.0\.metrics\.accuracy: Input should be a valid number"),
        (first_run(metrics={"accuracy": 0.5}), r"runs\.0\.accuracy: Extra inputs are not permitted"),
        (first_run(curve=[0.5]), "the file: the curves are empty, or differ in length"),
        (first_run(curve=["NaN"] * 30), r"runs\.0\.curve\.0: not a finite number"),
    ],
)
def test_broken_files(folder: Path, change: Any, message: str) -> None:
    path = folder / FILE
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(CannotTry, match=rf"baseline .*{FILE}: {message}"):
        Baseline.read(path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 1'])
def test_corrupt_files(folder: Path, content: str) -> None:
    (folder / FILE).write_text(content)
    with pytest.raises(CannotTry, match=rf"baseline .*{FILE}: the file: "):
        Baseline.read(folder / FILE)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match="cannot be read"):
        Baseline.read(tmp_path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match="not found; record one with harness baseline record"):
        Baseline.read(tmp_path / FILE)
