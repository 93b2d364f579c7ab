"""``pytest --changed``: what can see a change is run, and what cannot is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import catalogue
from scripts.margins import stands_on
from tests import impact

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def files() -> set[str]:
    """All test files, and the folders of the examples of checks."""
    found = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/checks/*/*/corpus.toml")]
    return {str(file.relative_to(ROOT)) for file in found}


@pytest.mark.parametrize(
    ("changed", "run", "left"),
    [
        (
            "harness/watch/checks/rows/epochs.py",
            [
                "tests/checks/rows/first-batch-again/corpus.toml",
                "tests/checks/test_judging.py",
                "tests/golden/test_golden.py",
            ],
            [
                "tests/checks/gradients/not-cleared/corpus.toml",
                "tests/mutants/test_mutants.py",
                "tests/describe/test_page.py",
            ],
        ),
        (
            "harness/watch/monitor.py",
            ["tests/checks/gradients/not-cleared/corpus.toml", "tests/watch/test_monitor.py"],
            ["tests/starts/test_mirror.py"],
        ),
        (
            "harness/documented_run/stages/train.py",
            ["tests/mutants/test_mutants.py"],
            ["tests/watch/facts/test_twins.py"],
        ),
        ("harness/watch/facts/twins.py", ["tests/watch/facts/test_twins.py"], ["tests/mutants/test_mutants.py"]),
        (
            "tests/checks/rows/drawn-alike/bad.py",
            ["tests/checks/rows/drawn-alike/corpus.toml"],
            ["tests/checks/rows/loaders-apart/corpus.toml"],
        ),
        ("tests/silenttrain/kinds/right/new_one.py", ["tests/test_silenttrain.py"], ["tests/report/test_report.py"]),
        ("docs/checks/rows.md", ["tests/test_check_pages.py"], ["tests/checks/test_judging.py"]),
        ("harness/resume/losses/began_anew.py", ["tests/resume/test_corpus.py"], ["tests/watch/facts/test_twins.py"]),
        ("README.md", ["tests/test_repository.py"], ["tests/watch/test_watch.py"]),
        ("harness/documented_run/assets/claims.toml", ["tests/test_claims.py"], ["tests/watch/facts/test_twins.py"]),
    ],
)
def test_what_sees_a_change_is_run(changed: str, run: list[str], left: list[str], files: set[str]) -> None:
    found = impact.touched({changed}, files)
    assert set(run) <= found
    assert not set(left) & found


def test_of_a_fact_the_examples_are_run_of_all_checks_that_stand_on_it(files: set[str]) -> None:
    for check in catalogue.checks():
        folder = f"tests/checks/{check.replace('::', '/')}/corpus.toml"
        for module in stands_on(check):
            assert folder in impact.touched({f"{module.replace('.', '/')}.py"}, files), module


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints/tf457.txt", "tests/conftest.py"])
def test_a_change_of_what_all_stand_on_runs_all(changed: str, files: set[str]) -> None:
    assert impact.touched({changed}, files) == files


def test_new_files_are_changes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True, capture_output=True
        )

    monkeypatch.setattr(impact, "ROOT", tmp_path)
    git("init", "-q", "-b", "main")
    (tmp_path / "kept.py").write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (tmp_path / "kept.py").write_text("2")
    (tmp_path / "new.py").write_text("3")
    assert impact.changed_since("HEAD") == {"kept.py", "new.py"}
    git("checkout", "-q", "-b", "branch")
    git("commit", "-q", "-am", "two")
    assert impact.changed_since("main") == {"kept.py", "new.py"}
    with pytest.raises(pytest.UsageError, match=r"--changed=nothing: .*name a commit that git knows"):
        impact.changed_since("nothing")
