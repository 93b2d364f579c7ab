"""What each command writes is what its published schema says; what lacks a key, or has another value there, is not."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from harness import catalogue
from harness.baseline.same_training import Apart, SameTrainingReport, WayReport
from harness.baseline.trainings import Changed, TrainingsReport, TrainingVerdict
from harness.cli import main
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.claims import ALL, PARTS
from harness.documented_run.recipe import Recipe
from harness.findings import Finding
from harness.vary.settings.run import SettingsReport
from harness.vary.settings.starts import Turned
from scripts.schemas import SCHEMAS
from tests.baseline.conftest import make_record
from tests.resume.test_resume import resume, script
from tests.server import server_of
from tests.test_record import RECORD
from tests.vary.test_vary import MUTANTS, edited
from tests.watch.test_teaching import SCRIPT as TEACHES

ROOT = Path(__file__).parents[1]
NOT_CLEARED = ROOT / "tests" / "checks" / "gradients" / "not-cleared"
SHORT = "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(2, 1)\n"
SHORT += "optimizer = torch.optim.SGD(model.parameters(), lr=LR)\n"
SHORT += "for _ in range(3):\n    optimizer.zero_grad()\n    model(torch.ones(4, 2)).sum().backward()\n"
SHORT += "    optimizer.step()\n"


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def written(*arguments: object) -> Any:
    """What a command writes to stdout, strictly read."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout, parse_constant=refuse)


def thin(value: Any) -> Any:
    """A copy with the first item of each list."""
    if isinstance(value, dict):
        return {key: thin(each) for key, each in value.items()}
    return [thin(each) for each in value[:1]] if isinstance(value, list) else value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """An object and all those in it."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(each)


def hold(name: str, output: Any) -> None:
    """Hold an output to its schema, and the schema to what it must refuse: at the top, each key gone or of no type."""
    schema = validator(name)
    assert [f"{error.json_path}: {error.message}" for error in schema.iter_errors(output)] == []
    short = thin(output)
    top = short if isinstance(short, dict) else short[0]
    assert [(key, way) for key in list(top) for way in wrong(schema, short, top, key)] == []
    for each in objects(short):
        if "hint" in each:
            assert list(wrong(schema, short, each, "hint")) == []


def wrong(schema: Draft202012Validator, output: Any, where: dict[str, Any], key: str) -> Iterator[str]:
    """The ways in which a key may be wrong, and its schema does not see it."""
    kept = where.pop(key)
    if schema.is_valid(output):
        yield "gone"
    where[key] = object()
    if schema.is_valid(output):
        yield "of no type"
    where[key] = kept


def shown(output: Any) -> bool:
    """Whether an example in docs/agents.md is this output, shortened."""
    text = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    return any(is_part(json.loads(each), output) for each in re.findall(r"```json\n(.*?)```", text, re.DOTALL))


def is_part(example: Any, whole: Any) -> bool:
    """Whether the whole is the example, but for keys and ends of texts ("…") that were left out."""
    if isinstance(example, dict):
        return isinstance(whole, dict) and all(key in whole and is_part(example[key], whole[key]) for key in example)
    if isinstance(example, list):
        return isinstance(whole, list) and len(example) == len(whole) and all(map(is_part, example, whole))
    if isinstance(example, str) and example.endswith("…"):
        return isinstance(whole, str) and whole.startswith(example[:-1])
    return bool(example == whole)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TQDM_DISABLE", "")
    return tmp_path


@pytest.mark.slow
def test_check(here: Path, pytestconfig: pytest.Config) -> None:
    for kind in ("good", "bad"):
        shutil.copy(NOT_CLEARED / f"{kind}.py", here / "train.py")
        done = server_of(pytestconfig).run(here, "check", "--format", "json", "train.py")
        hold("check", found := json.loads(done.stdout))
    assert shown(found)
    found["held"].append("gradients")
    assert not validator("check").is_valid(found), "an id has a family and a name"
    (here / "pyproject.toml").write_text('[tool.harness]\nscripts = ["train.py", "absent.py"]\n')
    done = server_of(pytestconfig).run(here, "check", "--format", "json")
    hold("check-scripts", json.loads(done.stdout))


@pytest.mark.slow
def test_tokens(here: Path, pytestconfig: pytest.Config) -> None:
    (here / "train.py").write_text(TEACHES)
    done = server_of(pytestconfig).run(here, "tokens", "--json", "-", "train.py")
    assert done.status == 0, done.stderr
    hold("tokens", json.loads(done.stdout))


def test_describe(here: Path, pytestconfig: pytest.Config) -> None:
    (here / "train.py").write_text(SHORT.replace("LR", "0.1"))
    done = server_of(pytestconfig).run(here, "describe", "--json", "-", "train.py")
    assert done.status == 0, done.stderr
    hold("describe", found := json.loads(done.stdout))
    facts = {key: value for line in found["lines"] for key, value in line["facts"].items()}
    assert facts["update.SGD.steps"] == found["updates"] == 3


def test_trainings() -> None:
    changed = Changed("data.train.rows", 60, 52)
    finding = Finding("a", "b", "c", "train.py:3", None, "mode::training-in-eval-mode")
    verdict = TrainingVerdict(
        "small", {"data": [changed]}, {"data": ("60 rows", "52 rows")}, {"data": "train.py:3"}, "not", [finding]
    )
    hold("baseline-trainings", json.loads(json.dumps(TrainingsReport([verdict]).as_dict())))


def test_same_training() -> None:
    apart = [Apart("update.SGD.steps", 8, 4), Apart("loss", 0.7, 1.4, 1, "2", 0.5)]
    way = WayReport("--processes 2", apart, {"loss": 0.5}, 8, ["metrics: none"])
    hold("same-training", json.loads(json.dumps(SameTrainingReport("small", "train.py", [way]).as_dict())))


def test_explain() -> None:
    hold("explain", pages := written("explain", "--json"))
    assert {page["id"] for page in pages} == {*catalogue.faults()}
    assert shown([page for page in pages if page["id"] == "gradients::not-cleared"])
    assert not validator("explain").is_valid([pages[0] | {"severity": "grave"}])


@pytest.mark.slow
def test_resume(here: Path, pytestconfig: pytest.Config) -> None:
    done = resume(pytestconfig, script(here, GOES_ON="False"), "--kills", "1", "--json", "found.json", "train.py")
    assert done.status == 1, done.stderr
    hold("resume", found := json.loads((here / "found.json").read_text()))
    assert shown(found)


@pytest.mark.slow
def test_compare_of_scripts(here: Path, pytestconfig: pytest.Config) -> None:
    for name, lr in (("a", "0.1"), ("b", "0.2")):
        (here / f"{name}.py").write_text(SHORT.replace("LR", lr))
    command = ("--command", "compare", "--json", "-", "a.py", "b.py")
    done = server_of(pytestconfig).run(here, *command, program="tests.resume.forked")
    assert done.status == 1, done.stderr
    hold("compare", found := json.loads(done.stdout))
    assert shown(found)
    found["differences"][0]["cause"] = "chance"
    assert not validator("compare").is_valid(found)


@pytest.mark.slow
def test_vary(here: Path, pytestconfig: pytest.Config) -> None:
    (here / "train.py").write_text(edited(*MUTANTS["independent::of-the-seed"]))
    command = ("--command", "vary", "--select", "independent", "--json", "-", "train.py")
    done = server_of(pytestconfig).run(here, *command, program="tests.resume.forked")
    assert done.status == 0, done.stderr
    hold("vary", found := json.loads(done.stdout))
    assert shown(found)
    found["relations"][0]["relation"] = "depends"
    assert not validator("vary").is_valid(found)


def test_vary_of_settings() -> None:
    turned = Turned("decay", "--decay = 0.1", "train.py:3", 0.1, [0.2], "nothing", seconds=1.0)
    report = SettingsReport("train.py", updates=8, settings=[turned], seconds={"one start": 1.0, "in all": 2.0})
    report.findings = [catalogue.settings()["settings::without-effect"].finding("another", "the same", "train.py:3")]
    hold("vary-settings", found := json.loads(json.dumps(report.as_dict())))
    found["settings"][0]["effect"] = "nothing at all"
    assert not validator("vary-settings").is_valid(found)


def test_compare_of_records(here: Path) -> None:
    other = json.loads(RECORD.read_text())
    other["recipe"]["lr"] = 3e-5
    (here / "other.json").write_text(json.dumps(other))
    hold("compare", written("compare", RECORD, "other.json", "--json", "-"))


def test_a_stored_run() -> None:
    """With every part, and numbers that JSON lacks; it is older than the kind."""
    text = RECORD.read_text().replace('"schema": 1,', '"schema": 1, "kind": "run",', 1)
    assert '"NaN"' in text
    hold("run", json.loads(text))
    assert not validator("run").is_valid(json.loads(text.replace('"NaN"', '"nothing"')))


@pytest.mark.slow
def test_run_documents_and_matrix(here: Path, small: Recipe) -> None:
    (here / "mine.py").write_text(f"from harness.documented_run.recipe import Recipe\nsmall = {small!r}\n")
    run = ("run", "--recipe", "mine.py:small", "--updates", 2, "--quiet", "--output", "runs/a")
    hold("run", written(*run, "--format", "json"))
    (here / "docs").mkdir()
    (here / "docs" / "a.md").write_text("```python\nx = 1\n```\n```python\nnothing\n```\n")
    hold("documents", written("documents", "docs", "--output", "runs/b", "--format", "json"))
    hold("documents", json.loads((here / "runs" / "b" / "documents.json").read_text()))
    hold("matrix", written("matrix", "runs", "--format", "json"))


def test_the_recorded_matrix() -> None:
    assert validator("matrix").is_valid(json.loads((ROOT / "baselines" / "matrix.json").read_text(encoding="utf-8")))


def test_claims(here: Path) -> None:
    hold("claims", written("claims", "--json", "-"))


def test_citations(here: Path) -> None:
    """Of documents that have their sections' bounds, and nothing in them."""
    for document in ALL:
        bounds = [bound for sections in PARTS.values() for bound in sections.get(document, ())]
        (here / f"{document}_a.txt").write_text("\n".join(dict.fromkeys(bounds)), encoding="utf-8")
    hold("citations", written("claims", "--documents", ".", "--json", "-"))


def test_baselines(here: Path) -> None:
    (here / "baselines").mkdir()
    shutil.copy(ROOT / "baselines" / "tiny-plain-cpu.json", here / "baselines")
    (here / "baselines" / "broken.json").write_text("{")
    hold("baseline-show", shown := written("baseline", "show", "--baselines", "baselines", "--json", "-"))
    kinds = {each.get("kind") for each in shown["baselines"]}
    assert kinds == {"seeds", None}
    inputs = Baseline.read(here / "baselines" / "tiny-plain-cpu.json").inputs
    make_record(inputs=inputs).write(here / "run.json")
    hold("baseline-compare", found := written("baseline", "compare", "run.json", "--json", "-"))
    assert found["comparison"][0]["findings"]


def test_an_example_that_says_something_else_is_none() -> None:
    assert is_part({"a": [{"b": "on…"}]}, {"a": [{"b": "one", "c": 1}], "d": 2})
    others: tuple[object, ...] = ({"a": []}, {"a": [{"b": "two"}]}, {"a": [{}]}, {}, [])
    for whole in others:
        assert not is_part({"a": [{"b": "on…"}]}, whole)


def test_every_schema_has_a_test() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in SCHEMAS if f'hold("{name}"' not in tests] == []
