"""Files that somebody has edited by hand, cut or made up: one sentence and exit status 2, never a traceback.

What is changed is drawn with a fixed seed; ``HARNESS_MUTATIONS`` asks for more of it.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.documented_run.baseline import stored
from harness.documented_run.matrix import matrix_of
from harness.documented_run.record import BlockRecord, DocumentsRecord, Provenance
from harness.findings import CheckOutcome, Finding
from tests.baseline.conftest import FINGERPRINT, make_record

MUTATIONS = int(os.environ.get("HARNESS_MUTATIONS", "6"))
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1e308, "", "0", "x" * 2000, "\x00", "../..", "a\nb", "NaN",
    [], [[]], [None], {}, {"a": 1},
)  # fmt: skip
DEEP = "[" * 100_000


def harness(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def no_traceback(result: Result, about: object) -> None:
    assert result.exception is None or isinstance(result.exception, SystemExit), (about, result.exc_info)
    assert result.exit_code in (0, 1, 2), about
    if result.exit_code == 2:
        assert result.stderr.count("harness: ") == 1, (about, result.stderr)
        assert len(result.stderr) < 3000, (about, result.stderr[:300])


def mutated(content: Any, draw: random.Random) -> Any:
    """A copy with one or two places in which something else stands, or nothing."""
    content = json.loads(json.dumps(content))
    for _ in range(draw.randint(1, 2)):
        place = draw.choice(list(_places(content)))
        holder, key = place
        if draw.random() < 0.3:
            del holder[key]
        else:
            holder[key] = draw.choice(ODD)
    return content


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every value below the top, by what holds it; of long lists the beginning."""
    keys = list(content) if isinstance(content, dict) else range(min(len(content), 3))
    for key in keys:
        yield content, key
        if isinstance(content[key], (dict, list)):
            yield from _places(content[key])


def run_record() -> dict[str, Any]:
    finding = Finding("one", "two", "mend it", "train.py:3", 2, "load::split-sizes", "error", "It is not.")
    check = CheckOutcome("load::split-sizes", "load", "split-sizes", "fails")
    record: dict[str, Any] = json.loads(make_record(43, findings=[finding], checks=[check]).as_json())
    return record


def documents_record() -> str:
    about = {"document": "a", "file": "a.md", "number": 1, "line": 7, "label": "f()", "key": "k", "outcome": "fails"}
    block = BlockRecord(**about, says="it broke", replacement="g()", source="s#1")  # type: ignore[arg-type]
    record = DocumentsRecord(
        recipe={"name": "tiny"}, fingerprint=FINGERPRINT, provenance=Provenance(), started="now", blocks=[block]
    )
    return record.model_dump_json()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a candidate of three seeds, a baseline of three others, a run and a matrix."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "baselines"
    for seed in range(42, 45):
        stored.add(folder, make_record(seed))
    candidate = folder / "candidates" / "tiny-plain-cpu.json"
    (folder / "tiny-plain-cpu.json").write_text(candidate.read_text())
    (folder / "matrix.json").write_text(matrix_of([make_record()], {}).as_json())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(run_record()))
    (tmp_path / "run" / "documents.json").write_text(documents_record())
    return tmp_path


COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "run/run.json": (
        ("baseline", "compare", "run", "--baselines", "baselines"),
        ("matrix", "run", "--baselines", "baselines"),
    ),
    "baselines/tiny-plain-cpu.json": (
        ("baseline", "show", "--baselines", "baselines"),
        ("baseline", "show", "tiny-plain-cpu", "--baselines", "baselines", "--json", "-"),
        ("baseline", "compare", "run", "--baselines", "baselines"),
        ("baseline", "compare", "baselines/candidates/tiny-plain-cpu.json", "--baselines", "baselines"),
    ),
    "baselines/candidates/tiny-plain-cpu.json": (
        ("baseline", "show", "--baselines", "baselines"),
        ("baseline", "compare", "baselines/candidates/tiny-plain-cpu.json", "--baselines", "baselines", "--json", "-"),
        ("baseline", "accept", "tiny-plain-cpu", "--reason", "a test", "--baselines", "baselines"),
    ),
    "run/documents.json": (("matrix", "run", "--baselines", "baselines"),),
    "baselines/matrix.json": (("matrix", "run", "--baselines", "baselines"),),
}


@pytest.mark.parametrize("file", COMMANDS)
def test_a_mutated_file_never_traces_back(home: Path, file: str) -> None:
    draw = random.Random(f"{file} 1")
    path, whole = home / file, (home / file).read_text()
    replaced = home / "baselines" / "tiny-plain-cpu.json"
    for number in range(MUTATIONS):
        text = json.dumps(mutated(json.loads(whole), draw))
        for command in COMMANDS[file]:
            path.write_text(text)
            before = replaced.read_text()
            result = harness(*command)
            no_traceback(result, (number, command, text[:200]))
            if result.exit_code == 2:
                assert replaced.read_text() == before, "refused, and changed all the same"
            replaced.write_text(before)


@pytest.mark.parametrize("file", COMMANDS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text(DEEP),
        lambda path: path.write_text('{"runs": ' + DEEP),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        lambda path: path.write_text(""),
        lambda path: path.unlink() or path.mkdir(),
    ],
    ids=["deep", "deep inside", "no text", "empty", "a folder"],
)
def test_a_broken_file_is_one_sentence(home: Path, file: str, spoil: Callable[[Path], None]) -> None:
    spoil(home / file)
    for command in COMMANDS[file]:
        result = harness(*command)
        no_traceback(result, command)
        assert result.exit_code in (1, 2)


@pytest.mark.parametrize("command", [("baseline", "compare"), ("matrix",)])
def test_a_path_below_a_file_is_one_sentence(home: Path, command: tuple[str, ...]) -> None:
    (home / "mine.py").write_text("")
    result = harness(*command, "mine.py/x")
    no_traceback(result, command)
    assert result.exit_code == 2
    assert "mine.py/x" in result.stderr


def test_what_is_missing_in_a_record_is_named(home: Path) -> None:
    for key, value, said in (
        ("seed", None, "recipe: seed"),
        ("name", 3, "recipe: name"),
        ("epochs", 0, "recipe: epochs"),
    ):
        record = run_record()
        record["recipe"][key] = value
        (home / "run" / "run.json").write_text(json.dumps(record))
        result = harness("baseline", "compare", "run", "--baselines", "baselines")
        assert result.exit_code == 2
        assert f"run record run/run.json: {said}" in result.stderr
    record = run_record()
    del record["recipe"]["seed"], record["fingerprint"]["device"]
    (home / "run" / "run.json").write_text(json.dumps(record))
    result = harness("baseline", "compare", "run", "--baselines", "baselines")
    assert "harness: the run record lacks recipe.seed, fingerprint.device; make the run again" in result.stderr


@pytest.mark.parametrize("name", ["tiny", "mine"])
@pytest.mark.parametrize("key", ["num_labels", "processes"])
def test_a_number_of_the_recipe_that_is_none_is_named(home: Path, name: str, key: str) -> None:
    path = home / "baselines" / "tiny-plain-cpu.json"
    content = json.loads(path.read_text())
    content["recipe"] |= {"name": name, key: "two"}
    path.write_text(json.dumps(content))
    result = harness("baseline", "show", "--baselines", "baselines")
    no_traceback(result, key)
    assert (
        f"recipe.{key} is 'two'; expected a whole number of at least {2 if key == 'num_labels' else 1}" in result.output
    )


def test_a_message_leaves_out_the_middle_of_what_it_quotes(home: Path) -> None:
    path = home / "baselines" / "tiny-plain-cpu.json"
    path.write_text(
        json.dumps(
            json.loads(path.read_text()) | {"recipe": {"name": "tiny", "loop": "plain", "num_labels": "x" * 50_000}}
        )
    )
    result = harness("baseline", "show", "--baselines", "baselines")
    assert result.stdout.startswith(f"baseline baselines/{path.name}: ")
    assert "[...]" in result.stdout
    assert "record one with harness baseline record" in result.stdout
    assert len(result.stdout) < 3000
