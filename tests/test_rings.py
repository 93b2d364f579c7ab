"""How the suite is run: no test is in neither ring, the parts of the second are all of it, and its costs are told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from tests import budget, rings
from tests.budget import Budget, file_of

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]


def expressions() -> dict[str, str]:
    """What the commands select: those of the README, of ``tox -e nightly`` and of ``tox -e gpu``."""
    (first,) = re.findall(r'^ +python3 -m venv .*/pytest -m "(.*?)"', (ROOT / "README.md").read_text(), re.MULTILINE)
    tox = (ROOT / "tox.ini").read_text()
    (nightly,) = re.findall(r'^commands = pytest -m "(nightly.*?)"', tox, re.MULTILINE)
    (gpu,) = re.findall(r"^commands = pytest -m (gpu) ", tox, re.MULTILINE)
    return {"first": first, "nightly": nightly, "gpu": gpu}


def selected(item: pytest.Item, expression: str) -> bool:
    names = {mark.name for mark in item.iter_markers()}
    chosen = Expression.compile(expression).evaluate(lambda name, /, **_: name in names)
    return chosen and rings.is_wanted(item, expression, None)


def test_each_test_is_in_one_ring(pytestconfig: pytest.Config) -> None:
    commands = expressions()
    assert commands["first"] == "not gpu"
    for item in pytestconfig.stash[rings.COLLECTED]:
        assert sum(selected(item, expression) for expression in commands.values()) == 1, item.nodeid


def test_ten_parts_are_the_whole_second_ring(pytestconfig: pytest.Config) -> None:
    for item in pytestconfig.stash[rings.COLLECTED]:
        parts = [number for number in range(10) if rings.is_wanted(item, "nightly", (number, 10))]
        assert len(parts) == (1 if item.get_closest_marker("nightly") else 10)


@pytest.mark.nightly
def test_benchmarks_are_all_measured_where_the_clock_is_asked_for() -> None:
    """Also those that are nightly where they run without it."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/benchmarks/test_watch.py"]
    # As from a shell: pytest-benchmark disables itself where this says that it runs beside others.
    shell = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "--benchmark-only"], cwd=ROOT, env=shell, capture_output=True, text=True, check=False
    )
    assert "test_watching[tiny]" in done.stdout, done.stdout
    assert "deselected" not in done.stdout


@pytest.mark.parametrize("text", ["3", "10/10", "-1/10", "a/b", "1/"])
def test_a_part_is_below_the_number_of_parts(text: str) -> None:
    with pytest.raises(ValueError, match="expected I/N with I below N"):
        rings._part(text)
    assert rings._part("3/10") == (3, 10)


def configured(*args: str, markexpr: str = "", **options: Any) -> Any:
    given = {"benchmark_only": False, "collectonly": False} | options
    return SimpleNamespace(
        args=list(args), option=SimpleNamespace(markexpr=markexpr, **given), getoption=lambda name, default: given[name]
    )


def test_workers_are_started_for_many_tests_and_for_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(3)), raising=False)
    workers = rings.pytest_xdist_auto_num_workers
    assert workers(configured("tests", markexpr="not gpu")) == 3
    assert workers(configured("tests/checks/rows")) == 3
    assert workers(configured("tests/test_rings.py")) == 0
    assert workers(configured("tests/test_rings.py::test_x")) == 0
    assert workers(configured(*["tests/test_rings.py::test_x"] * rings.FEW)) == 3
    assert workers(configured("tests", markexpr="gpu")) == 0
    assert workers(configured("tests", benchmark_only=True)) == 0
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(64)), raising=False)
    assert workers(configured("tests")) == rings.MOST_WORKERS


def test_a_marker_in_a_text_is_not_used() -> None:
    assert rings.uses_marker("gpu", "import pytest\n@pytest.mark.gpu\ndef test_it(): pass\n")
    assert rings.uses_marker("gpu", "gpu = pytest.mark.gpu\n")
    assert not rings.uses_marker("gpu", "TEXT = '@pytest.mark.gpu'\n")


def test_examples_are_counted_by_family() -> None:
    assert file_of("tests/checks/rows/shuffled/corpus.toml::bad.py") == "checks/rows"
    assert file_of("tests/test_rings.py::test_x[a/b]") == "test_rings.py"


RECORDED = {
    "calibration": 0.2,
    "files": {"checks": {"seconds": 100.0}, "test_rings": {"seconds": 1.0}, "nightly checks": {"seconds": 9.0}},
}


@pytest.mark.parametrize(
    ("seconds", "calibrated", "share", "named"),
    [
        ({"checks": 115.0, "test_rings": 1.0}, 0.2, "+15%", []),
        ({"checks": 100.0, "test_rings": 20.0}, 0.2, "+19%", ["test_rings"]),
        ({"checks": 130.0, "test_rings": 20.0}, 0.2, "+49%", ["checks", "test_rings"]),
        ({"checks": 130.0, "test_new": 20.0}, 0.3, "-1%", []),  # a slower processor
        ({"checks": 80.0}, 0.1, "+58%", ["checks"]),  # a quicker one
        ({"nightly checks": 10.0}, 0.2, "+11%", []),
        ({"nightly checks": 10.9}, 0.2, "+21%", []),  # a small one, on a busy machine
        ({"extras styles": 13.0}, 0.2, "+0%", []),  # nothing is recorded of that ring
    ],
)
def test_files_are_named_where_the_whole_grew(
    seconds: dict[str, float], calibrated: float, share: str, named: list[str]
) -> None:
    spent = Budget()
    spent.seconds.update(seconds)
    whole, *files = spent.grown(RECORDED, calibrated)
    assert f": {share}; " in whole
    assert [line.split(": ")[1] for line in files] == named


def test_what_was_skipped_is_named_for_another_environment(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("pytest_plugins = ['tests.rings']")
    pytester.makepyfile(
        test_it="import pytest\n@pytest.mark.parametrize('each', [])\ndef test_each(each): pass\n"
        "@pytest.mark.parametrize('each', [1])\ndef test_one(each): pytest.skip('x')\ndef test_other(): pass\n"
    )
    pytester.runpytest("--skipped-to", "skipped", "-p", "no:cacheprovider")
    assert (pytester.path / "skipped").read_text().split() == ["test_it.py::test_each", "test_it.py::test_one[1]"]


def test_seconds_of_what_was_started_count(tmp_path: Path) -> None:
    import subprocess
    import sys

    before = budget.seconds_of_the_tree()
    code = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert budget.seconds_of_the_tree() - before >= 0.45, "0.5, in ticks of a hundredth"


@pytest.mark.parametrize(("seconds", "fails"), [(9, True), (11, False)])
def test_a_ring_that_has_doubled_fails(
    seconds: int, fails: bool, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest("pytest_plugins = ['tests.budget']")
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "test_it.py").write_text("def test_it(): pass\n")
    spent = iter([0.0, 20.0])
    monkeypatch.setattr(budget, "seconds_of_the_tree", lambda: next(spent))
    monkeypatch.setattr(budget, "calibration", lambda: 0.2)
    monkeypatch.setattr(budget, "TABLE", table := pytester.path / "suite.json")
    table.write_text(f'{{"calibration": 0.2, "files": {{"test_it.py": {{"seconds": {seconds}}}}}}}')
    done = pytester.runpytest_inprocess("--budget=show", "-p", "no:cacheprovider", "-p", "no:xdist", "tests")
    assert (done.ret == pytest.ExitCode.TESTS_FAILED) == fails
    said = f"ring first: 20 CPU seconds, recorded {seconds}: +*%; 0 s of workers"
    done.stdout.fnmatch_lines([said, f"grown: test_it.py: 20 s, recorded {seconds} s"])
