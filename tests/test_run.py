"""A run and its record: what is written, and what is not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.run import run_recipe
from harness.documented_run.stages import CHECKS, STAGES, Run, StageResult, batches, train
from harness.errors import CannotTry
from harness.files import write_atomically


@pytest.fixture(scope="module")
def finished(small_run: Callable[[str], Path]) -> Path:
    return small_run("plain")


def test_record_has_the_documented_keys(finished: Path) -> None:
    record = json.loads((finished / "run.json").read_text())
    assert {"schema", "recipe", "fingerprint", "findings", "updates", "curves", "metrics", "epochs", "seconds"} <= set(
        record
    )
    assert record["schema"] == 1
    assert all(finding["severity"] == "warning" for finding in record["findings"])
    assert record["updates"] == record["updates_planned"] == 16
    assert [len(record["curves"][name]) for name in ("loss", "lr", "grad_norm")] == [16] * 3
    assert set(record["metrics"]) == {"accuracy", "f1"}
    assert len(record["epochs"]) == 2
    assert record["epochs"][-1] == record["metrics"]
    assert [check["check"] for check in record["checks"]] == list(CHECKS)
    assert set(record["seconds"]) == {check.partition("::")[0] for check in CHECKS}
    assert record["fingerprint"]["libraries"]["torch"]
    assert record["fingerprint"]["threads"] >= 1
    digests = record["digests"]
    assert [len(digests["rows"]), len(set(digests["random"]))] == [16, 16]  # dropout draws in each update
    assert [kept["update"] for kept in digests["tensors"]] == [1, 2, 4, 8, 16]
    assert len({kept["weights"]["classifier.weight"] for kept in digests["tensors"]}) == 5
    assert len({kept["gradients"]["classifier.weight"] for kept in digests["tensors"]}) == 5
    assert record["recipe"]["lr"] == 5e-5


def test_record_reads_back(finished: Path) -> None:
    record = RunRecord.read(finished)
    assert record.check("load::completes").outcome == "holds"
    assert not record.failed
    with pytest.raises(KeyError):
        record.check("load::nothing")


def test_model_loads_and_is_the_trained_one(finished: Path, small: Recipe) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(finished / "model")
    tokenizer = AutoTokenizer.from_pretrained(finished / "model")
    run = Run(small)
    for name in ("load", "tokenize", "columns", "batches"):
        next(stage for stage in STAGES if stage.name == name).do(run)
    assert len(tokenizer) == len(run.tokenizer)
    right = 0
    with torch.no_grad():
        for batch in run.eval_dataloader:
            right += (model(**batch).logits.argmax(dim=-1) == batch["labels"]).sum().item()
    rows = len(run.raw_datasets["validation"])
    assert right / rows == pytest.approx(RunRecord.read(finished).metrics["accuracy"])


def test_nothing_unfinished_is_left(finished: Path) -> None:
    assert sorted(path.name for path in finished.iterdir()) == ["model", "run.json"]


def test_stages_are_reported_as_they_end(small: Recipe) -> None:
    seen: list[StageResult] = []
    run_recipe(small, until="batches", on_stage=seen.append)
    assert [result.stage for result in seen] == ["load", "tokenize", "columns", "batches"]


def test_stops_before_an_update_is_spent(small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.mutants.mutants import shuffles_the_validation_data

    monkeypatch.setattr(batches.STAGE, "do", shuffles_the_validation_data)
    record = run_recipe(small, output=tmp_path / "out")
    assert record.failed
    assert {finding.check for finding in record.findings} == {"batches::eval-in-order"}
    assert record.updates == 0
    assert record.checks[-1].stage == "batches"
    assert RunRecord.read(tmp_path / "out").model_dump_json() == record.model_dump_json()
    assert not (tmp_path / "out" / "model").exists()


def test_interrupt_keeps_what_was_measured(small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = train.evaluate_between_epochs

    def interrupted(run: Run, metric: object) -> None:
        evaluated(run, metric)
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "evaluate_between_epochs", interrupted)
    run_recipe(small, output=tmp_path)
    record = RunRecord.read(tmp_path)
    assert record.interrupted
    assert record.updates == len(record.curves.loss) == 8
    assert len(record.epochs) == 1
    assert record.metrics == {}
    assert record.model is None
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_shortened_run_keeps_its_schedule(small: Recipe) -> None:
    record = run_recipe(small, updates=5)
    assert (record.updates, record.updates_planned) == (5, 16)
    assert record.curves.lr == pytest.approx([5e-5 * (1 - made / 16) for made in range(5)])
    assert record.epochs == []
    assert not record.failed


@pytest.mark.nightly
def test_more_updates_than_planned_is_the_whole_run(small: Recipe) -> None:
    assert run_recipe(small, updates=1000).updates == 16


def test_unknown_stage(small: Recipe) -> None:
    with pytest.raises(CannotTry, match="unknown stage 'start': expected one of load, tokenize"):
        run_recipe(small, until="start")


def test_a_finished_run_is_never_overwritten(finished: Path, small: Recipe) -> None:
    before = (finished / "run.json").read_bytes()
    with pytest.raises(CannotTry, match="already holds a run"):
        run_recipe(small, output=finished)
    assert (finished / "run.json").read_bytes() == before


def test_full_disk_costs_the_model_only(small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import PreTrainedModel

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", full)
    with pytest.raises(CannotTry, match=r"is recorded in .*, but its model could not be saved \(No space left"):
        run_recipe(small, updates=2, output=tmp_path / "out")
    record = RunRecord.read(tmp_path / "out")
    assert (record.updates, record.model) == (2, None)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run.json"]


@pytest.mark.parametrize("broken", ["data", "checkpoint"])
def test_bad_input_leaves_no_folder(small: Recipe, tmp_path: Path, broken: str) -> None:
    with pytest.raises(CannotTry):
        run_recipe(small.with_(**{broken: str(tmp_path / "nowhere")}), output=tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_bad_input_leaves_the_users_folder(small: Recipe, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CannotTry):
        run_recipe(small.with_(data=str(tmp_path / "nowhere")), output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_output_that_cannot_be_written(small: Recipe, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotTry, match=r"cannot be written .*--output"):
        run_recipe(small, output=tmp_path / "file" / "out")


def test_truncated_weights(small: Recipe, tmp_path: Path) -> None:
    from harness.documented_run.sources.builtin import CHECKPOINT

    for path in CHECKPOINT.iterdir():
        content = path.read_bytes()
        (tmp_path / path.name).write_bytes(content[:1000] if path.suffix == ".safetensors" else content)
    with pytest.raises(CannotTry, match=r"weights of .* could not be loaded"):
        run_recipe(small.with_(checkpoint=str(tmp_path)), until="model")


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
def test_damaged_file_of_a_checkpoint(small: Recipe, tmp_path: Path, name: str) -> None:
    from harness.documented_run.sources.builtin import CHECKPOINT

    for path in CHECKPOINT.iterdir():
        (tmp_path / path.name).write_bytes(b"{" if path.name == name else path.read_bytes())
    with pytest.raises(CannotTry, match=r"could not be loaded|cannot be read as JSON"):
        run_recipe(small.with_(checkpoint=str(tmp_path)), until="model")


def test_a_library_that_changed_is_a_finding(small: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    def renamed(*args: object, **kwargs: object) -> None:
        raise TypeError("unexpected keyword argument 'num_labels'")

    monkeypatch.setattr(AutoModelForSequenceClassification, "from_pretrained", renamed)
    (finding,) = run_recipe(small, until="model").findings
    assert (finding.check, finding.severity) == ("model::completes", "error")
    assert "unexpected keyword argument" in finding.observed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"run record .*run\.json: "),
        ("{", r"run record .*run\.json: "),
        ("[]", r"run record .*run\.json: "),
        ('{"schema": 2}', r"run record .*run\.json: "),
    ],
)
def test_broken_record(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(CannotTry, match=message):
        RunRecord.read(tmp_path)


def test_record_of_a_newer_schema_names_the_schema(finished: Path, tmp_path: Path) -> None:
    newer = json.loads((finished / "run.json").read_text()) | {"schema": 2}
    (tmp_path / "run.json").write_text(json.dumps(newer))
    with pytest.raises(CannotTry, match=r"run record .*run\.json: schema: Input should be 1 \(of a newer harness\?\)"):
        RunRecord.read(tmp_path)


def test_missing_record(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"run record .*run\.json not found"):
        RunRecord.read(tmp_path)


def test_non_finite_numbers_survive(finished: Path, tmp_path: Path) -> None:
    record = RunRecord.read(finished)
    record.curves.loss[3] = float("nan")
    record.curves.grad_norm[3] = float("inf")
    record.write(tmp_path / "run.json")
    json.loads((tmp_path / "run.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    again = RunRecord.read(tmp_path)
    assert math.isnan(again.curves.loss[3])
    assert math.isinf(again.curves.grad_norm[3])


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_writing_to_a_device() -> None:
    write_atomically(Path("/dev/null"), "text")
    assert not Path("/dev/null").is_file()


def test_atomic_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
