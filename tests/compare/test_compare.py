"""``harness compare`` as a user calls it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from transformers import BertConfig, BertForSequenceClassification

from harness.cli import main
from harness.compare.differences import OTHER, Difference, _batches, with_causes
from harness.compare.gaps import gap
from harness.documented_run.record import RunRecord
from tests.resume.test_rows import journal
from tests.test_record import RECORD


def compare(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments])


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., str]:
    """Writes the record with other values, by the paths that lead to them."""

    def write(changes: dict[tuple[Any, ...], Any]) -> str:
        values = json.loads(RECORD.read_text())
        for path, value in changes.items():
            inside = values
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = value
        (tmp_path / "other.json").write_text(json.dumps(values))
        return str(tmp_path / "other.json")

    return write


@pytest.mark.parametrize("changes", [{}, {("digests",): None}])  # as in records of earlier versions
def test_a_record_and_itself(changed: Callable[..., str], changes: dict[Any, Any]) -> None:
    result = compare(str(RECORD), changed(changes))
    assert (result.exit_code, "the same, bit for bit" in result.output) == (0, True)


@pytest.mark.parametrize(
    ("changes", "cause", "update", "what"),
    [
        ({("recipe", "lr"): 3e-5}, "compare::hyper-parameter", 1, "lr"),
        ({("recipe", "seed"): 1}, "compare::random-state", 1, "seed"),
        ({("recipe", "shuffle"): False}, "compare::data-order", 1, "shuffle"),
        ({("inputs", "data"): "0" * 64}, "compare::computation", 1, "what data held"),
        ({("curves", "lr", 2): 1e-9}, "compare::hyper-parameter", 3, "lr"),
        ({("curves", "loss", 2): 0.7171768}, "compare::kernel-or-precision", 3, "the loss"),
        ({("curves", "loss", 2): 0.9}, "compare::computation", 3, "the loss"),
        ({("curves", "grad_norm", 0): 99.0}, "compare::computation", 1, "the gradients' norm"),
    ],
)
def test_records_that_differ(
    changed: Callable[..., str], tmp_path: Path, changes: dict[Any, Any], cause: str, update: int, what: str
) -> None:
    result = compare(str(RECORD), changed(changes), "--json", str(tmp_path / "found.json"))
    assert result.exit_code == 1, result.output
    first = json.loads((tmp_path / "found.json").read_text())["differences"][0]
    assert (first["cause"], first["update"], first["what"]) == (cause, update, what)
    assert f"first, update {update}: {cause}" in result.output


@pytest.mark.parametrize(
    ("changes", "cause", "update", "what", "tensors"),
    [
        ({("tensors", 0, "weights", "w"): "x"}, "compare::initialisation", 1, "the first weights", ["w"]),
        ({("rows", 1): "dd cc"}, "compare::data-order", 2, "the order of the rows", []),
        ({("rows",): ["gg hh"] * 3}, "compare::computation", 1, "the rows, of which the two runs share none", []),
        ({("random", 1): "x"}, "compare::random-state", 2, "the random numbers", []),
        ({("tensors", 1, "gradients", "b"): "x"}, "compare::computation", 2, "the gradients", ["b"]),
        ({("tensors", 1, "weights", "w"): "x"}, "compare::computation", 1, "the update", ["w"]),
        ({("tensors", 2, "weights", "w"): "x"}, "compare::computation", 3, "the update or one before it", ["w"]),
    ],
)
def test_digests_of_records_that_differ(
    changed: Callable[..., str], changes: dict[Any, Any], cause: str, update: int, what: str, tensors: list[str]
) -> None:
    first = told(str(RECORD), changed({("digests", *path): value for path, value in changes.items()}))[0]
    assert (first["cause"], first["update"], first["tensors"]) == (cause, update, tensors)
    assert first["what"].startswith(what)


def told(*records: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(compare(*records, "-q", "--json", "-").stdout)["differences"]
    return found


def test_what_is_not_finite_has_no_size(changed: Callable[..., str]) -> None:
    (found,) = told(str(RECORD), changed({("curves", "loss", 0): "nan"}))
    assert (found["what"], found["cause"], found["size"]) == ("the loss", "compare::computation", None)


def test_what_comes_later_explains_nothing_before(changed: Callable[..., str]) -> None:
    found = told(str(RECORD), changed({("curves", "loss", 0): 0.9, ("curves", "lr", 2): 1e-9}))
    assert [(each["update"], each["what"]) for each in found] == [(1, "the loss"), (3, "lr")]


@pytest.mark.parametrize("path", [("weights",), ("metrics", "accuracy")])
def test_what_only_the_end_tells(changed: Callable[..., str], path: tuple[str, ...]) -> None:
    (found,) = told(str(RECORD), changed({path: 0.5 if path[0] == "metrics" else "0" * 16}))
    assert (found["cause"], found["update"]) == ("compare::computation", 8)
    assert found["what"] in ("the weights at the end", "accuracy")


def test_trainer_is_told_by_its_differences(changed: Callable[..., str]) -> None:
    found = told(str(RECORD), changed({("recipe", "loop"): "trainer"}))
    assert [(each["what"], each["values"]) for each in found] == [
        ("loop", ["plain", "trainer"]),
        ("gradient clipping (max_grad_norm)", ["none", "1.0"]),
    ]


def test_a_record_of_the_documented_run_stays_small(changed: Callable[..., str]) -> None:
    with torch.device("meta"):
        names = [name for name, _ in BertForSequenceClassification(BertConfig()).named_parameters()]
    kept = dict.fromkeys(names, "0" * 16)
    updates = [{"update": 2**power, "weights": kept, "gradients": kept} for power in range(11)]
    rows = " ".join(["0" * 8] * 8)
    digests = {"rows": [rows] * 1377, "random": ["0" * 16] * 1377, "tensors": updates}
    curve = [0.12345678901234567] * 1377
    file = Path(changed({("digests",): digests, ("curves",): dict.fromkeys(("loss", "lr", "grad_norm"), curve)}))
    RunRecord.read(file).write(file)
    assert file.stat().st_size < 1_000_000


def test_a_setting_explains_the_curves(changed: Callable[..., str], tmp_path: Path) -> None:
    changes = {("recipe", "lr"): 3e-5, ("curves", "loss", 2): 0.9}
    result = compare(str(RECORD), changed(changes), "--json", str(tmp_path / "found.json"))
    found = json.loads((tmp_path / "found.json").read_text())["differences"]
    assert [(each["what"], each["explained_by"]) for each in found] == [("lr", None), ("the loss", "lr")]
    assert "also, update 3: compare::computation, the loss; may follow from lr\n" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.py", "other.py"], "there is no script absent.py"),
        (["train.py"], "give a second script"),
        (["train.py", "--args-b", "'"], "cannot be read as a command line"),
        (["train.py", "--python-b", "no-such-python"], "no Python interpreter no-such-python"),
        (["broken.json", "broken.json"], "run record broken.json"),
    ],
)
def test_what_cannot_be_compared(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    Path("broken.json").write_text("{")
    result = compare(*arguments)
    assert result.exit_code == 2
    assert says in result.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import torch.distributed as d\nd.init_process_group('gloo')\n", "must be started by torchrun"),
        ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', '1'])\n", "processes that it starts itself"),
    ],
)
def test_scripts_of_several_processes(text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(f"{name}.py").write_text(text)
    result = compare("a.py", "b.py")
    assert (result.exit_code, says in result.output, "Traceback" in result.output) == (2, True, False)


def test_one_of_several_processes_compares_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = compare("train.py", "train.py")
    assert (result.exit_code, "call it without a launcher" in result.output) == (2, True)


def test_an_interpreter_needs_the_harness_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')  # nothing that is installed
    python.chmod(0o755)
    result = compare("train.py", "--python-b", str(python))
    assert result.exit_code == 2
    assert "has no harness, or one without compare" in result.output


@pytest.mark.parametrize(("more", "says"), [([4], " (4 rows are seen in A, 5 in B)"), ([], "")])
def test_how_many_rows_each_side_sees_is_said_where_the_order_is_another(more: list[int], says: str) -> None:
    one = journal([(1, [0, 1]), (1, [2, 3])])
    other = journal([(1, [1, 0]), (1, [3, 2]), *([(2, more)] if more else [])])
    (found,) = _batches(one, other)
    assert found.what == f"the order of the rows{says}"


def test_what_is_computed_otherwise_names_what_it_may_follow_from() -> None:
    lr = Difference("compare::hyper-parameter", "options", 2, "lr", ("1", "2"))
    before, after = Difference(OTHER, "step", 1, "the update"), Difference(OTHER, "step", 2, "the update")
    loss = Difference(OTHER, "loss", 2, "the loss")
    found = list(with_causes([lr], [before, after, loss, Difference(OTHER, "step", 2, "lr")]))
    assert [(each.what, each.update, each.explained_by) for each in found] == [
        *(("the update", 1, None), ("the update", 2, "lr"), ("the loss", 2, None)),
    ]


@pytest.mark.parametrize(
    ("other", "is_rounding"),
    [
        (torch.tensor([1.0, 2.0 + 2**-22]), True),
        (torch.tensor([1.0, 2.001]), False),
        (torch.tensor([1.0, 2.0], dtype=torch.float64), True),
        (torch.tensor([1.0, 2.015], dtype=torch.bfloat16), True),
        (torch.tensor([1.0, torch.nan]), False),
        (torch.tensor([1.0, torch.inf]), False),
    ],
)
def test_sizes_are_held_against_rounding(other: torch.Tensor, is_rounding: bool) -> None:
    found = gap(torch.tensor([1.0, 2.0]), other)
    assert (found.size <= found.rounding) is is_rounding
