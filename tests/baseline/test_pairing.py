"""Pairing: what is the same model, optimizer or loader when it is called otherwise. No script is run here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.baseline import accepting, training_file, trainings
from harness.baseline.accepting import ALL
from harness.baseline.pairing import pairs
from harness.baseline.training_file import StoredTraining
from harness.baseline.trainings import TrainingVerdict, says_of, verdict
from harness.describe.description import Description, Line
from harness.describe.lines import patterns
from harness.report.trainings import accepted_lines, verdict_lines
from harness.settings import Training

MACHINE = {"device": "cpu"}
SHAPES = "16x8 16 2x16 2"
TENSORS = ["0.weight", "0.bias", "2.weight", "2.bias"]


def model(
    name: str,
    shapes: str = SHAPES,
    tensors: Sequence[str] = TENSORS,
    *,
    parameters: int = 178,
    given: int = 480,
    loop: str = "",
) -> list[Line]:
    """What a page has of a model that is trained."""
    facts: dict[str, Any] = {"parameters": parameters, "frozen": [], "shapes": shapes, "names": [*tensors]}
    return [
        Line("data", f"{name} was trained on {given} rows", {f"{loop}data.{name}.given": given}, "train.py:9"),
        Line("model", f"{name}: {parameters}", {f"{loop}model.{name}.{k}": v for k, v in facts.items()}, "train.py:9"),
        Line("evaluation", f"{name} called 6 times", {f"{loop}evaluation.{name}.calls": 6}, "train.py:20"),
        Line("saved", f"the weights of {name}", {f"{loop}saved.1.weights_of": [name]}, "train.py:22"),
    ]


def optimizer(name: str, shapes: str = SHAPES, tensors: Sequence[str] = TENSORS, **settings: Any) -> list[Line]:
    facts = {"group_1.elements": 178, "group_1.names": sorted(tensors), "shapes": shapes, **settings}
    return [
        Line("optimizer", name, {f"optimizer.{name}.{key}": value for key, value in facts.items()}, "train.py:10"),
        Line("update", f"30 by {name}", {f"update.{name}.steps": 30}, "train.py:14"),
        Line("schedule", f"{name} stays", {f"schedule.{name}.first": 0.1}, "train.py:14"),
    ]


def loader(name: str, rows: int, size: int = 16) -> Line:
    return Line("data", f"{name}: {rows}", {f"data.{name}.rows": rows, f"data.{name}.batch_size": size}, "train.py:7")


def run(*lines: Line, loss: float = 0.7, named: str = "AdamW") -> Description:
    return Description(
        "train.py", 30, list(lines), {"loss": [loss, 0.6, 0.5], f"gradient_norm.{named}": [loss / 2, 0.4]}
    )


def stored(of: Description) -> StoredTraining:
    noise = {key: [0.0, 0.0] for key in of.numbers}
    return StoredTraining("train.py", None, MACHINE, dict(of.facts), says_of(of), dict(of.numbers), noise)


def compared(before: Description, after: Description) -> TrainingVerdict:
    return verdict("churn", stored(before), after, MACHINE)


BEFORE = run(*model("Sequential"), *optimizer("AdamW"))


def test_a_renamed_class_is_one_line_and_no_difference() -> None:
    found = compared(BEFORE, run(*model("Churn"), *optimizer("AdamW")))
    assert not found.failed
    assert found.renamed == ["Sequential is now called Churn"]
    assert [*verdict_lines(found)] == [
        f"churn: matches its baseline in {found.facts} facts; "
        "numbers were compared bit for bit, on the machine of the recording",
        "  Sequential is now called Churn",
    ]


def test_a_rename_with_other_weights_differs_in_its_numbers() -> None:
    found = compared(BEFORE, run(*model("Churn"), *optimizer("AdamW"), loss=0.84))
    assert list(found.changed) == ["numbers"]
    said = "\n".join(verdict_lines(found))
    assert "first loss: 0.7 -> 0.84 (+20%)" in said
    assert "Sequential is now called Churn" in said


def test_tensors_that_are_called_otherwise_are_the_same_tensors() -> None:
    tensors = [f"net.{each}" for each in TENSORS]
    found = compared(BEFORE, run(*model("Churn", tensors=tensors), *optimizer("AdamW", tensors=tensors)))
    assert not found.failed, found.changed
    assert found.renamed == ["Sequential is now called Churn; tensor 0.weight is now called net.0.weight, and 3 more"]


def test_a_layer_of_many_is_known_by_its_pattern() -> None:
    def frozen(start: str) -> list[Line]:
        lines = model("Net", "12 tensors, 00", [f"{start}.*.weight", f"{start}.*.bias"])
        facts = {**lines[1].facts, "model.Net.frozen": [f"{start}.3.bias", f"{start}.3.weight"]}
        return [lines[0], replace(lines[1], facts=facts), *lines[2:]]

    assert not compared(run(*frozen("layer")), run(*frozen("encoder"))).failed
    other = frozen("encoder")
    other[1] = replace(other[1], facts={**other[1].facts, "model.Net.frozen": ["encoder.4.bias", "encoder.4.weight"]})
    found = compared(run(*frozen("layer")), run(*other))
    assert [(each.key, each.now) for each in found.changed["model"]] == [
        ("model.Net.frozen", ["layer.4.bias", "layer.4.weight"])
    ]


def test_the_layers_of_a_sequence_get_names() -> None:
    """Lists of many are patterns in the baseline, which the new names have not."""
    places = [f"{place}.{each}" for place in range(8) for each in ("weight", "bias")]
    called = [f"fc{place}.{each}" for place in range(8) for each in ("weight", "bias")]
    before = run(*model("Net", "16 tensors, 00", places), *optimizer("SGD", tensors=patterns(places)))
    after = run(*model("Net", "16 tensors, 00", called), *optimizer("SGD", tensors=patterns(called)))
    for one, other in ((before, after), (after, before)):
        found = compared(one, other)
        assert not found.failed, found.changed
    assert found.renamed == ["Net: tensor fc0.weight is now called 0.weight, and 15 more"]


def test_tensors_in_another_order_with_the_same_names_are_themselves() -> None:
    shapes, names = "8x8 8x8", ["one.weight", "two.weight"]
    before = run(*model("Net", shapes, names))
    turned = model("Net", shapes, names[::-1])
    turned[1] = replace(turned[1], facts={**turned[1].facts, "model.Net.frozen": ["one.weight"]})
    found = compared(before, run(*turned))
    assert [(each.key, each.now) for each in found.changed["model"]] == [
        ("model.Net.frozen", ["one.weight"]),
        ("model.Net.names", ["two.weight", "one.weight"]),
    ]


def test_a_replacement_is_another_model_and_its_data_are_the_same() -> None:
    after = run(*model("Churn", "32x8 32 2x32 2", parameters=354), *optimizer("AdamW", "32x8 32 2x32 2"), loss=0.8)
    found = compared(BEFORE, after)
    assert found.renamed == []
    assert list(found.changed) == ["model", "optimizer", "numbers"]
    assert [(each.key, each.was, each.now) for each in found.changed["model"]] == [
        ("model.Sequential.class", "Sequential", "Churn"),
        ("model.Sequential.parameters", 178, 354),
        ("model.Sequential.shapes", SHAPES, "32x8 32 2x32 2"),
    ]


def test_two_equal_models_are_paired_by_their_order() -> None:
    """What is called first in the run takes the place of what was called first: its rows are others, and it shows."""
    before = run(*model("Actor", given=480), *model("Critic", given=60))
    found = compared(before, run(*model("Critic", given=480), *model("Actor", given=60)))
    assert not found.failed
    assert found.renamed == ["Actor is now called Critic", "Critic is now called Actor"]
    found = compared(before, run(*model("Critic", given=60), *model("Actor", given=480)))
    assert [(each.key, each.was, each.now) for each in found.changed["data"]] == [
        ("data.Actor.given", 480, 60),
        ("data.Critic.given", 60, 480),
    ]


def test_one_of_two_models_that_is_new_leaves_the_other_its_name() -> None:
    found = compared(BEFORE, run(*model("Teacher"), *model("Sequential"), *optimizer("AdamW")))
    assert {each.key.split(".")[1] for each in found.changed["model"]} == {"Teacher"}
    new = model("Sequential", "2", ["bias"], parameters=2)
    found = compared(BEFORE, run(*new, *model("Churn"), *optimizer("AdamW")))
    assert found.renamed == ["Sequential is now called Churn"]
    assert {each.key.split(".")[1] for each in found.changed["model"]} == {"Sequential#2"}


def test_an_optimizer_of_another_class_is_another_behaviour_and_its_updates_are_the_same() -> None:
    found = compared(BEFORE, run(*model("Sequential"), *optimizer("RMSprop"), named="RMSprop"))
    assert [(each.key, each.was, each.now) for each in found.changed["optimizer"]] == [
        ("optimizer.AdamW.class", "AdamW", "RMSprop")
    ]
    assert list(found.changed) == ["optimizer"]


def test_loaders_are_paired_by_rows_and_batches() -> None:
    before = run(*model("Net"), loader("evaluation", 40), loader("evaluation#2", 60))
    assert not compared(before, run(*model("Net"), loader("evaluation", 60), loader("evaluation#2", 40))).failed
    found = compared(before, run(*model("Net"), loader("evaluation", 60), loader("evaluation#2", 52)))
    assert [(each.key, each.was, each.now) for each in found.changed["data"]] == [("data.evaluation.rows", 40, 52)]


def test_each_loop_has_names_of_its_own() -> None:
    before = run(*model("Net"), *model("Net", loop="loop2."))
    found = compared(before, run(*model("Net"), *model("Other", loop="loop2.")))
    assert not found.failed
    assert found.renamed == ["Net is now called Other"]


def test_baselines_from_before_shapes_were_kept_are_paired_by_parameters() -> None:
    old = stored(BEFORE)
    old.facts = {k: v for k, v in old.facts.items() if not k.endswith((".shapes", ".names")) or "group" in k}
    found = verdict("churn", old, run(*model("Churn"), *optimizer("AdamW")), MACHINE)
    assert not found.failed, found.changed
    assert found.renamed == ["Sequential is now called Churn"]
    assert verdict("churn", old, run(*model("Churn", parameters=354), *optimizer("AdamW")), MACHINE).failed


def test_what_is_saved_of_a_renamed_class_is_the_same() -> None:
    def saved(name: str) -> Line:
        return Line("saved", "", {"saved.2.what": [f"{name}, the module itself", "a state of 4 tensors"]})

    assert not compared(run(*model("Net"), saved("Net")), run(*model("A"), saved("A"))).failed
    assert compared(run(*model("Net"), saved("Net")), run(*model("A"), saved("B"))).failed


def test_renaming_there_and_back_changes_nothing() -> None:
    tensors = [f"net.{each}" for each in TENSORS]
    after = run(*model("Churn", tensors=tensors), *optimizer("RMSprop", tensors=tensors), named="RMSprop")
    paired = pairs(BEFORE.facts, after.facts)
    back = paired.turned().as_before(paired.as_before(after))
    assert (back.facts, back.numbers) == (after.facts, after.numbers)


@pytest.fixture
def accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Accept what a run does: what was shown before, what was taken, and the baseline afterwards."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(trainings, "fingerprint", lambda: MACHINE)

    def accept(after: Description, *sections: str, **settings: Any) -> tuple[list[str], list[str], StoredTraining]:
        path, shown = tmp_path / "churn.txt", list[str]()
        training_file.write(path, stored(BEFORE), "churn")
        monkeypatch.setattr(trainings, "described", lambda *_, **__: after)

        def show(found: TrainingVerdict, taken: Sequence[str]) -> None:
            assert training_file.read(path, "churn").numbers == BEFORE.numbers, "shown before it is taken"
            shown.extend(accepted_lines(found, taken))

        training = Training("churn", ["train.py"], **settings)
        taken = accepting.accept(training, tmp_path, path, sections, "why", show=show)
        return shown, taken, training_file.read(path, "churn")

    return accept


def test_changed_numbers_are_shown_before_they_are_accepted(accepted: Any) -> None:
    after = run(*model("Churn"), *optimizer("AdamW"), loss=0.84)
    shown, taken, now = accepted(after, ALL)
    assert taken == ["numbers"]
    assert shown == [
        "Sequential is now called Churn",
        "numbers:",
        "  first loss: 0.7 -> 0.84 (+20%)",
        "  loss differs from update 1 on: 0.7 -> 0.84 (+20%)",
        "  gradient_norm.AdamW differs from update 1 on: 0.35 -> 0.42 (+20%)",
    ]
    assert now.facts["data.Churn.given"] == 480
    assert now.facts["saved.1.weights_of"] == ["Churn"]
    assert now.says["evaluation.Churn.calls"] == "Churn called 6 times"
    assert not verdict("churn", now, after, MACHINE).renamed


def test_numbers_that_are_tolerated_are_shown_before_they_are_taken_with_others(accepted: Any) -> None:
    shown, taken, now = accepted(
        run(*model("Sequential"), *optimizer("AdamW"), loss=0.84), ALL, tolerance={"numbers.loss": 0.5}
    )
    assert (taken, now.numbers["loss"][0]) == (["numbers"], 0.84)
    assert "  loss differs from update 1 on: 0.7 -> 0.84 (+20%)" in shown


def test_names_alone_are_accepted_with_all(accepted: Any) -> None:
    shown, taken, now = accepted(run(*model("Churn"), *optimizer("AdamW")), ALL)
    assert (shown, taken) == (["Sequential is now called Churn"], ["names"])
    assert "model.Churn.parameters" in now.facts


def test_another_optimizer_keeps_its_old_name_until_it_is_accepted(accepted: Any) -> None:
    after = run(*model("Sequential"), *optimizer("RMSprop"), *[loader("train", 60)], named="RMSprop", loss=0.84)
    shown, taken, now = accepted(after, "data")
    assert (taken, "update.AdamW.steps" in now.facts) == (["data"], True)
    assert shown[-4] == "numbers differ too and are not accepted:"
    _, taken, now = accepted(after, ALL)
    assert taken == ["data", "optimizer", "numbers"]
    assert now.facts["update.RMSprop.steps"] == 30
    assert now.numbers["gradient_norm.RMSprop"][0] == 0.42
    assert not verdict("churn", now, after, MACHINE).failed
