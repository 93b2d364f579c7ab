"""``harness resume`` on scripts of several styles: each right one survives, each bug is named by what it loses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import catalogue
from tests.resume.forked import CORPUS, lines_of, result_of, scripts

SCRIPTS = {entry["file"]: entry for entry in scripts()}

IN_TWO_PROCESSES = ("right/ddp_sampler.py", "random-state-lost/rank_0_for_all.py")
"""The others take another minute each; ``python -m tests.resume.forked --processes`` runs them too."""

QUICK = ("right/epoch_checkpoints.py", "optimizer-state-lost/only_the_weights.py")
"""In one process and of plain PyTorch; the others are slow tests."""


def results(*arguments: str) -> dict[str, dict[str, Any]]:
    """Of the scripts of one process, by their files."""
    return {line["file"]: line for line in lines_of("tests.resume.forked", *arguments)}


def check(entry: dict[str, Any], found: dict[str, Any]) -> None:
    """Whether exactly what is expected was said, and by the kills that show it."""
    expected = [entry["expected"]] if entry["expected"] else []
    assert [finding["check"] for finding in found["findings"]] == expected, found
    assert "error" not in found, found
    kills = [kill["kind"] for kill in found["kills"]]
    assert kills[:2] == ["in an epoch", "during a save"]
    # Where something was lost in the save alone, the script is killed right before it too.
    assert kills[2:] in ([], ["after an update"])
    assert bool(kills[2:]) or entry["expected"] != "resume::checkpoint-torn"
    for finding in found["findings"]:
        file, line = finding["where"].rsplit(":", 1)
        assert Path(entry["file"]).name == file
        assert 1 <= int(line) <= len((CORPUS / entry["file"]).read_text().splitlines())


def test_the_manifest_names_every_script_and_every_loss() -> None:
    assert set(SCRIPTS) == {str(path.relative_to(CORPUS)) for path in CORPUS.glob("*/*.py")}
    assert {entry["expected"] for entry in SCRIPTS.values()} == {"", *catalogue.losses()}
    for file, entry in SCRIPTS.items():
        assert file.partition("/")[0] == (entry["expected"].removeprefix("resume::") or "right")


def test_a_right_script_and_one_that_forgets_the_optimizer() -> None:
    found = results("--plain", *QUICK)
    for file in QUICK:
        check(SCRIPTS[file], found[file])
    assert [kill["resumed_from"] is None for kill in found[QUICK[0]]["kills"]] == [False, False]


@pytest.fixture(scope="module")
def all_results() -> dict[str, dict[str, Any]]:
    return results()


@pytest.mark.slow
@pytest.mark.parametrize("file", [file for file, entry in SCRIPTS.items() if entry.get("processes", 1) == 1])
def test_corpus(file: str, all_results: dict[str, dict[str, Any]]) -> None:
    check(SCRIPTS[file], all_results[file])


@pytest.mark.slow
@pytest.mark.distributed
@pytest.mark.parametrize("file", IN_TWO_PROCESSES)
def test_corpus_in_two_processes(file: str) -> None:
    check(SCRIPTS[file], result_of(SCRIPTS[file]))
