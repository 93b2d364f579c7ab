"""The baseline of a training: its file, what differs from it, and what may be accepted. No script is run here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.baseline import accepting, training_file, trainings
from harness.baseline.training_file import VARIES, StoredTraining, read, text_of
from harness.baseline.trainings import TrainingsReport, first_update, verdict
from harness.describe.description import Description, Line
from harness.errors import CannotTry
from harness.findings import Finding
from harness.report.trainings import verdict_lines
from harness.settings import Training

TRAINING = Training("small", ["train.py", "--epochs", "1"])
MACHINE = {"device": "cpu", "threads": 2, "cpu": "one"}
LINES = [
    Line("data", "train: 60 rows", {"data.train.rows": 60, "data.train.order": "shuffled"}, "train.py:7"),
    Line("data", "", {"data.Net.mean": 0.001}),
    Line("loss", "cross_entropy", {"loss.cross_entropy.counted": 60, "loss.share_of_the_mean": 1.0}, "train.py:12"),
    Line("update", "8 updates", {"update.SGD.steps": 8, "update.SGD.clipped": {"not clipped": 8}}, "train.py:14"),
]
FINDING = Finding("a", "it is in eval mode", "b", "train.py:3", None, "mode::training-in-eval-mode")


def run(*lines: Line, **changes: Any) -> Description:
    found = Description("train.py", 8, list(lines or LINES), {"loss": [0.7, 0.6, 0.5], "metric.f1.f1": [0.8]})
    return replace(found, **changes)


def stored(**changes: Any) -> StoredTraining:
    says = {key: line.text for line in LINES if line.text for key in line.facts}
    facts = {key: value for line in LINES for key, value in line.facts.items()}
    noise = {"loss": [0.0, 0.0], "metric.f1.f1": [0.0, 0.0]}
    found = StoredTraining("train.py --epochs 1", "abc", MACHINE, facts, says, dict(run().numbers), noise)
    return replace(found, **changes)


def changed(line: int, **facts: Any) -> Description:
    """A run of which some facts of one line are others, and what it says."""
    of = LINES[line]
    start = next(iter(of.facts)).rpartition(".")[0]
    others = {f"{start}.{key}": value for key, value in facts.items()}
    lines = [
        *LINES[:line],
        replace(of, text=of.text and f"{of.text}, now", facts={**of.facts, **others}),
        *LINES[line + 1 :],
    ]
    return run(*lines)


def test_the_file_has_one_fact_a_line_and_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    before = stored(accepted=["data at abc: fewer rows"])
    training_file.write(path, before, "small")
    text = path.read_text()
    assert "# train: 60 rows\ndata.train.rows = 60\n" in text
    assert 'update.SGD.clipped = {"not clipped": 8}\n' in text
    assert (
        text.index("data.train.rows") < text.index("loss.cross") < text.index("update.SGD") < text.index("numbers.loss")
    )
    assert read(path, "small") == before
    assert text_of(read(path, "small"), "small") == text


@pytest.mark.parametrize(
    ("line", "said"),
    [("data.train.rows 60", "no KEY = VALUE"), ("data.train.rows = sixty", "Expecting value")],
)
def test_a_line_that_cannot_be_read_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    path.write_text(text_of(stored(), "small").replace("data.train.rows = 60", line))
    with pytest.raises(CannotTry, match=rf"small.txt, line \d+: {said}"):
        read(path, "small")


@pytest.mark.parametrize("cut", ["numbers.", "# command", "# machine"])
def test_a_file_that_lacks_a_part_is_no_baseline(cut: str, tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    path.write_text("".join(each for each in text_of(stored(), "small").splitlines(True) if not each.startswith(cut)))
    with pytest.raises(CannotTry, match="no facts, no numbers or no command"):
        read(path, "small")


def test_a_training_without_a_baseline_says_how_it_gets_one(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match="record it with harness baseline record small"):
        read(tmp_path / "small.txt", "small")


def test_the_same_run_differs_in_nothing() -> None:
    found = verdict("small", stored(), run(), MACHINE)
    assert not found.failed
    assert found.lane == "numbers were compared bit for bit, on the machine of the recording"
    (line,) = verdict_lines(found)
    assert "matches its baseline in 7 facts" in line


def test_the_first_section_that_differs_is_shown_and_the_others_are_named() -> None:
    lines = [replace(LINES[0], text="train: 52 rows", facts={**LINES[0].facts, "data.train.rows": 52}), *LINES[1:3]]
    found = verdict("small", stored(), run(*lines, changed(3, steps=7).lines[3]), MACHINE)
    assert list(found.changed) == ["data", "update"]
    said = "\n".join(verdict_lines(found))
    assert "small: data differs from the baseline (train.py:7)" in said
    assert "was  train: 60 rows" in said
    assert "now  train: 52 rows" in said
    assert "data.train.rows: 60 -> 52" in said
    assert "update differs too: update.SGD.steps: 8 -> 7\n" in said
    assert "To accept everything: harness baseline accept small all --why TEXT" in said
    assert "  numbers are unchanged:\n    first loss: 0.7 -> 0.7 (the same)\n" in said
    assert found.numbers_compared
    assert "harness baseline accept small data --why TEXT" in said


@pytest.mark.parametrize(
    ("line", "facts", "differs"),
    [
        (0, {"rows": 60.0}, False),
        (0, {"order": "in order"}, True),
        (0, {"twice": True}, True),  # a fact that is new
        (1, {"mean": 0.0015}, False),  # rounding, of what is near 0
        (1, {"mean": 0.2}, True),
        (2, {"counted": 61}, True),
        (3, {"clipped": {"not clipped": 7, "norm clipped to 1": 1}}, True),
        (3, {"steps": None}, True),
    ],
)
def test_what_counts_as_another_fact(line: int, facts: dict[str, Any], differs: bool) -> None:
    assert verdict("small", stored(), changed(line, **facts), MACHINE).failed == differs


def test_a_fact_that_is_gone_differs() -> None:
    found = verdict("small", stored(), run(*LINES[:3]), MACHINE)
    assert [each.key for each in found.changed["update"]] == ["update.SGD.steps", "update.SGD.clipped"]


def test_a_fact_that_varies_is_not_compared() -> None:
    facts = {**stored().facts, "data.train.order": VARIES}
    assert not verdict("small", stored(facts=facts), changed(0, order="in order"), MACHINE).failed


def test_bits_of_real_numbers_are_compared_on_the_same_kind_of_machine_alone() -> None:
    facts = {**stored().facts, "data.train.digest_bits": "00ff"}
    now = changed(0, digest_bits="00aa")
    assert [each.key for each in verdict("small", stored(facts=facts), now, MACHINE).changed["data"]] == [
        "data.train.digest_bits"
    ]
    assert not verdict("small", stored(facts=facts), now, {**MACHINE, "cpu": "another"}).failed


NOISY = {"loss": [0.01, 0.005], "metric.f1.f1": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("loss", "noise", "machine", "differs", "lane"),
    [
        ([0.7, 0.6, 0.5], None, MACHINE, False, "bit for bit"),
        ([0.7, 0.6, 0.5000001], None, MACHINE, True, "bit for bit"),
        ([0.7, 0.6, 0.5000001], None, {**MACHINE, "threads": 1}, False, "within the noise"),
        ([0.7, 0.6, 0.51], None, {**MACHINE, "threads": 1}, True, "within the noise"),
        ([0.7, 0.6, 0.51], NOISY, MACHINE, False, "within the noise"),
        ([0.74, 0.64, 0.54], NOISY, MACHINE, True, "within the noise"),  # each is near enough, and all are shifted
        ([0.7, 0.6, 0.9], NOISY, {**MACHINE, "device": "cuda"}, False, "recorded on cpu, and this run used cuda"),
        ([0.7, 0.6], NOISY, MACHINE, True, "within the noise"),  # a number is missing
        ([0.7, 0.6, float("nan")], None, MACHINE, True, "bit for bit"),
        ([0.7, 0.6, float("nan")], NOISY, MACHINE, True, "within the noise"),
    ],
)
def test_numbers_are_compared_as_far_as_the_machine_allows(
    loss: list[float], noise: dict[str, list[float]] | None, machine: dict[str, Any], differs: bool, lane: str
) -> None:
    before = stored() if noise is None else stored(noise=noise)
    found = verdict("small", before, run(numbers={"loss": loss, "metric.f1.f1": [0.8]}), machine)
    assert ("numbers" in found.changed) == found.failed == differs
    assert lane in found.lane
    assert found.numbers_compared == (machine["device"] == MACHINE["device"])


def test_a_loss_that_was_no_number_and_is_none_again_is_the_same(tmp_path: Path) -> None:
    nan = {"loss": [0.7, float("nan"), float("inf")], "metric.f1.f1": [0.8]}
    training_file.write(tmp_path / "small.txt", stored(numbers=nan), "small")
    before = read(tmp_path / "small.txt", "small")
    assert not verdict("small", before, run(numbers=nan), MACHINE).failed
    found = verdict("small", before, run(numbers={**nan, "loss": [0.7, float("nan"), 0.5]}), MACHINE)
    assert first_update(found.changed["numbers"][0]) == 3
    assert json.loads(json.dumps(TrainingsReport([found]).as_dict(), allow_nan=False))


def test_the_first_number_that_differs_is_named() -> None:
    found = verdict("small", stored(), run(numbers={"loss": [0.7, 0.65, 0.5], "metric.f1.f1": [0.8]}), MACHINE)
    said = "\n".join(verdict_lines(found))
    assert "small: numbers differ from the baseline" in said
    assert "first loss: 0.7 -> 0.7 (the same)" in said
    assert "loss differs from update 2 on: 0.6 -> 0.65 (+8.33%)" in said


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        ({"loss": [0.7, 0.6, 0.4]}, "loss differs in the last update: 0.5 -> 0.4 (-20%)"),
        ({"loss": [0.7, 0.6]}, "loss: 3 numbers -> 2 numbers"),
        ({"loss": [0.7, 0.6, float("nan")]}, "loss differs in the last update: 0.5 -> nan"),
        ({"loss": [0.7, 0.6, 0.50000001]}, "loss differs in the last update: 0.5 -> 0.50000001 (+2e-06%)"),
        ({"metric.f1.f1": [0.9]}, "metric.f1.f1 differs from value 1 on: 0.8 -> 0.9 (+12.5%)"),
        ({"metric.f1.f1": []}, "metric.f1.f1: was 0.8, now absent"),
    ],
)
def test_numbers_are_shown_as_they_were_and_as_they_are(numbers: dict[str, list[float]], line: str) -> None:
    found = verdict("small", stored(), run(numbers={**run().numbers, **numbers}), MACHINE)
    assert f"  {line}" in [*verdict_lines(found)]


def test_numbers_are_compared_where_the_behaviour_differs() -> None:
    now = replace(changed(0, rows=52), numbers={"loss": [0.9, 0.8, 0.7], "metric.f1.f1": [0.8]})
    found = verdict("small", stored(), now, MACHINE)
    assert list(found.changed) == ["data", "numbers"]
    said = "\n".join(verdict_lines(found))
    assert "  numbers differ too:\n    first loss: 0.7 -> 0.9 (+28.6%)\n    loss differs from update 1 on:" in said
    said = "\n".join(verdict_lines(verdict("small", stored(), now, {**MACHINE, "device": "cuda"})))
    assert "  numbers were not compared:\n    first loss: 0.7 -> 0.9 (+28.6%)\n" in said


def test_lines_that_were_are_beside_those_that_are() -> None:
    """Each on a line of its own, and without those that are the same."""
    lines = [replace(each, section="data", facts={f"data.x{n}": n}) for n, each in enumerate(LINES) if each.text]
    now = [replace(each, text=f"{each.text}!", facts=dict.fromkeys(each.facts, -1)) for each in lines[:2]] + lines[2:]
    facts, says = {k: v for each in lines for k, v in each.facts.items()}, {f"data.x{n}": LINES[n].text for n in (0, 2)}
    found = verdict("small", stored(facts=facts, says=says), run(*now), MACHINE)
    assert [*verdict_lines(found)][1:5] == [
        "  was  train: 60 rows",
        "  now  train: 60 rows!",
        "  was  cross_entropy",
        "  now  cross_entropy!",
    ]


def test_an_error_fails_whatever_the_baseline_says() -> None:
    found = verdict("small", stored(), run(findings=[FINDING]), MACHINE)
    assert found.failed
    assert "mode::training-in-eval-mode at train.py:3" in "\n".join(verdict_lines(found))


Runs = Callable[..., list[dict[str, str]]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """In the place of running the script: what each run did, the last one again and again."""

    def given(*descriptions: Description) -> list[dict[str, str]]:
        ahead, environments = list(descriptions), list[dict[str, str]]()

        def described(training: Training, folder: Path, env: dict[str, str] | None = None) -> Description:
            environments.append(env or {})
            return ahead.pop(0) if len(ahead) > 1 else ahead[0]

        monkeypatch.setattr(trainings, "described", described)
        return environments

    monkeypatch.setattr(trainings, "fingerprint", lambda: MACHINE)
    monkeypatch.delenv("CI", raising=False)
    return given


def test_recording_measures_the_noise_and_leaves_out_what_varies(runs: Runs, tmp_path: Path) -> None:
    other = changed(0, order="in order")
    other.numbers = {"loss": [0.7, 0.6, 0.507], "metric.f1.f1": [0.8]}
    environments = runs(run(), other, run())
    found, _ = trainings.record(TRAINING, tmp_path)
    assert environments == [{}, trainings.OTHERWISE, {}]
    assert found.facts["data.train.order"] == VARIES
    assert found.facts["data.train.rows"] == 60
    assert found.noise["loss"] == pytest.approx([0.01, 0.01 / 6])
    assert found.noise["metric.f1.f1"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("other", "made"),
    [
        (run(), 2),
        (run(numbers={"loss": [0.7, 0.6, 0.50001], "metric.f1.f1": [0.8]}), 2),  # rounding
        (run(numbers={"loss": [0.7, 0.6, 0.51], "metric.f1.f1": [0.8]}), 3),
        (changed(0, rows=61), 3),
        (run(*LINES[:3]), 3),
    ],
)
def test_a_third_run_is_made_where_two_differ(other: Description, made: int, runs: Runs, tmp_path: Path) -> None:
    told: list[str] = []
    environments = runs(run(), other, run())
    trainings.record(TRAINING, tmp_path, tell=told.append)
    assert (len(environments), len(told)) == (made, made)
    assert told[1] == "small: run 2, with one thread and another PYTHONHASHSEED, about 0 s"
    environments.clear()
    trainings.record(TRAINING, tmp_path, run(), told.append)
    assert environments[0] == trainings.OTHERWISE, "a run that was made is not made again"


def test_a_run_with_an_error_is_not_recorded(runs: Runs, tmp_path: Path) -> None:
    runs(run(findings=[FINDING]))
    with pytest.raises(CannotTry, match="never accepts an error"):
        trainings.record(TRAINING, tmp_path)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\n")
    training_file.write(tmp_path / "small.txt", stored(), "small")
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def accept(checkout: Path, *sections: str) -> StoredTraining:
    accepting.accept(TRAINING, checkout, checkout / "small.txt", sections, "fewer  rows\n are meant")
    return read(checkout / "small.txt", "small")


BOTH = [replace(LINES[0], facts={**LINES[0].facts, "data.train.rows": 52}), *LINES[1:3], changed(3, steps=7).lines[3]]
"""Two sections that differ."""


@pytest.mark.parametrize(
    ("wanted", "now", "accepted", "made"),
    [
        (["data", "update"], run(*BOTH), ["data", "update"], 1),
        (["all"], run(*BOTH), ["data", "update"], 1),
        (["all"], run(*BOTH, numbers={"loss": [0.9]}), ["data", "update", "numbers"], 2),
        (["update", "data", "numbers"], run(*BOTH), ["data", "update", "numbers"], 2),
        (["all"], run(numbers={"loss": [0.9]}), ["numbers"], 2),
    ],
)
def test_several_sections_are_accepted_at_once(
    wanted: list[str], now: Description, accepted: list[str], made: int, runs: Runs, checkout: Path
) -> None:
    environments = runs(now)
    found = accept(checkout, *wanted)
    assert [each.partition(" at ")[0] for each in found.accepted] == accepted
    assert len(environments) == made
    assert not verdict("small", found, now, MACHINE).failed


def test_numbers_are_not_accepted_before_all_of_the_behaviour(runs: Runs, checkout: Path) -> None:
    runs(run(*BOTH, numbers={"loss": [0.9]}))
    with pytest.raises(CannotTry, match="the behaviour differs in update: accept that before"):
        accept(checkout, "data", "numbers")
    with pytest.raises(CannotTry, match="nothing in loss differs"):
        accept(checkout, "data", "loss")
    assert read(checkout / "small.txt", "small").accepted == []
    runs(run())
    with pytest.raises(CannotTry, match="nothing differs from the baseline"):
        accept(checkout, "all")


def test_one_section_is_accepted_with_its_reason_and_the_others_stay(runs: Runs, checkout: Path) -> None:
    lines = [replace(LINES[0], facts={**LINES[0].facts, "data.train.rows": 52}), *LINES[1:3]]
    runs(run(*lines, changed(3, steps=7).lines[3]))
    accept(checkout, "data")
    found = read(checkout / "small.txt", "small")
    assert found.facts["data.train.rows"] == 52
    assert found.facts["update.SGD.steps"] == 8
    assert found.says["update.SGD.steps"] == "8 updates"  # and not what the run says of another section now
    commit = trainings.commit_of(checkout)
    assert found.accepted == [f"data at {commit}: fewer rows are meant"]
    assert found.commit == commit


def test_numbers_are_accepted_alone_and_only_when_nothing_else_differs(runs: Runs, checkout: Path) -> None:
    runs(run(numbers={"loss": [0.9, 0.8, 0.7], "metric.f1.f1": [0.8]}))
    assert accept(checkout, "numbers").numbers["loss"] == [0.9, 0.8, 0.7]
    runs(changed(0, rows=52))
    with pytest.raises(CannotTry, match="the behaviour differs in data: accept that"):
        accept(checkout, "numbers")


@pytest.mark.parametrize(
    ("section", "found", "said"),
    [
        ("nonsense", changed(0, rows=52), "no section nonsense"),
        ("loss", changed(0, rows=52), "nothing in loss differs"),
        ("data", run(findings=[FINDING]), "never accepts an error"),
    ],
)
def test_what_is_not_accepted(section: str, found: Description, said: str, runs: Runs, checkout: Path) -> None:
    runs(found)
    before = (checkout / "small.txt").read_text()
    with pytest.raises(CannotTry, match=said):
        accept(checkout, section)
    assert (checkout / "small.txt").read_text() == before


def test_nothing_is_accepted_in_ci(runs: Runs, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(changed(0, rows=52))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(CannotTry, match="while CI is set"):
        accept(checkout, "data")


def test_a_change_that_is_not_committed_yet_is_accepted_as_one(runs: Runs, checkout: Path) -> None:
    runs(changed(0, rows=52))
    (checkout / "train.py").write_text("import torch, sys\n")
    commit = trainings.commit_of(checkout)
    stored = accept(checkout, "data")
    assert stored.accepted == [f"data with changes to train.py after {commit}: fewer rows are meant"]
    assert stored.commit == commit


def test_a_baseline_of_another_command_is_not_compared(runs: Runs, tmp_path: Path) -> None:
    runs(run())
    with pytest.raises(CannotTry, match="record it again"):
        trainings.compare(Training("small", ["other.py"]), tmp_path, stored())


def test_a_baseline_whose_training_is_gone_is_named(tmp_path: Path) -> None:
    training_file.write(tmp_path / "old.txt", stored(), "old")
    training_file.write(tmp_path / "small.txt", stored(), "small")
    (tmp_path / "notes.txt").write_text("somebody else's")
    assert list(training_file.left_over(tmp_path, [TRAINING])) == [tmp_path / "old.txt"]


@pytest.mark.parametrize(
    ("tolerance", "rows", "loss", "differs"),
    [
        ({}, 61, [0.7, 0.6, 0.5], ["data"]),
        ({"data.*.rows": 0.02}, 61, [0.7, 0.6, 0.5], []),
        ({"data.*.rows": 0.01}, 61, [0.7, 0.6, 0.5], ["data"]),
        ({"data.train.rows": 0.0, "data.*": 1.0}, 61, [0.7, 0.6, 0.5], ["data"]),
        ({"numbers.loss": 0.02}, 60, [0.7, 0.6, 0.51], []),
        ({"numbers.loss": 0.01}, 60, [0.7, 0.6, 0.51], ["numbers"]),
        ({"numbers.loss": 9.0}, 60, [0.7, 0.6], ["numbers"]),
    ],
)
def test_what_is_tolerated(tolerance: dict[str, float], rows: int, loss: list[float], differs: list[str]) -> None:
    now = replace(changed(0, rows=rows), numbers={"loss": loss, "metric.f1.f1": [0.8]})
    found = verdict("small", stored(), now, MACHINE, tolerance=tolerance)
    assert list(found.changed) == differs
    assert ("within the tolerance of pyproject.toml" in found.lane) == ("numbers.loss" in tolerance)


def test_what_is_ignored_is_listed_where_it_differs() -> None:
    now = replace(changed(0, rows=52), numbers={"loss": [0.7, 0.6, 0.4], "metric.f1.f1": [0.8]})
    found = verdict("small", stored(), now, MACHINE, ignore=["data.*.rows", "numbers.*", "update.*"])
    assert (found.failed, found.ignored) == (False, ["data.train.rows", "numbers.loss"])
    assert [*verdict_lines(found)][1:] == ["  ignored, though they differ: data.train.rows, numbers.loss"]
    elsewhere = verdict("small", stored(), now, {**MACHINE, "device": "cuda"}, ignore=["data.*", "numbers.*"])
    assert elsewhere.ignored == ["data.train.rows"], "numbers were not compared"
