"""How the suite is run: two rings of tests, in as many processes as the machine has cores, with one thread each.

``pytest -m "not gpu"`` is the first ring, which guards every change. What measures rather than guards (others' code,
kills at random moments, clusters, simulations, further scripts of a kind) is marked ``nightly`` and left out unless
``-m`` names the marker: ``tox -e nightly`` runs it, and ``.ci/run`` a twentieth of it, which the commit chooses.

What README's environment lacks for a test skips it there. ``--skipped-to FILE`` writes the names of such tests, and
``pytest @FILE`` runs them where there is more.
"""

from __future__ import annotations

import ast
import gc
import os
import random
import re
import secrets
import shlex
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

MOST_WORKERS = 8
"""Each has a process that has imported all libraries, and another that forks: a gigabyte and a half."""

FEW = 20
"""From so many files or tests on, workers are worth waiting for."""

TOGETHER = pytest.StashKey[str]()
"""Of a test: by what name others share a fork with it (:mod:`tests.server`), so that what one leaves may reach them."""

COLLECTED = pytest.StashKey[list[pytest.Item]]()
"""All tests that were collected, those that were left out too."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("rings", "rings of tests").addoption(
        "--nightly-part", metavar="I/N", type=_part, help="of the nightly tests only the I-th of N parts, from 0 on"
    )
    parser.getgroup("rings").addoption(
        "--skipped-to", metavar="FILE", type=Path, help="write the names of the tests that were skipped, one a line"
    )
    parser.getgroup("rings").addoption(
        "--shuffled", metavar="SEED", help="run the tests that share a fork in the order that a former run has printed"
    )


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and int(number) < int(of)):
        raise ValueError(f"expected I/N with I below N, as 3/10, found {text}")
    return int(number), int(of)


def part_of(nodeid: str, parts: int) -> int:
    """Which of so many parts a test is in: by its name, so that others that come or go change nothing."""
    return zlib.crc32(nodeid.encode()) % parts


def first_of_each(names: Iterable[str], kind: Callable[[str], object]) -> set[str]:
    """The first name of each kind: the one that guards every change, where the others are nightly."""
    found: dict[object, str] = {}
    for name in names:
        found.setdefault(kind(name), name)
    return set(found.values())


def is_wanted(item: pytest.Item, markexpr: str, part: tuple[int, int] | None) -> bool:
    if item.get_closest_marker("nightly") is None:
        return True
    if "nightly" not in markexpr:
        return False
    return part is None or part_of(item.nodeid, part[1]) == part[0]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "nightly: measures rather than guards; left out unless -m names it")
    given = getattr(config, "workerinput", {}).get("shuffled", config.getoption("shuffled"))
    config.option.shuffled = given or secrets.token_hex(4)
    if not _measures(config):
        # Session without a core of their own wait for each other; a benchmark is of the threads that it is asked for.
        os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker collects the tests in the order in which the others do."""
    node.workerinput["shuffled"] = node.config.option.shuffled


def _measures(config: pytest.Config) -> bool:
    return bool(config.getoption("benchmark_only", False)) or bool(re.search(r"(?<!not )gpu", config.option.markexpr))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core; none for a few tests, which would wait for it, nor where something is measured."""
    few = len(config.args) < FEW and all("::" in each or each.endswith(".py") for each in config.args)
    if few or _measures(config) or config.option.collectonly:
        return 0
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_WORKERS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For ``-m gpu`` only files are read that use the marker, or a fixture with it of the conftest.py beside them.

    To import all of them takes 19 CPU seconds.
    """
    if not re.match(r"gpu\b(?! or)", config.option.markexpr) or collection_path.is_dir():
        return None
    text, beside = collection_path.read_text(encoding="utf-8", errors="replace"), collection_path.parent / "conftest.py"
    marked = re.findall(r"\(.*mark\.gpu.*\)\ndef (\w+)", beside.read_text(encoding="utf-8")) if beside.is_file() else []
    return None if uses_marker("gpu", text) or any(re.search(rf"\b{name}: ", text) for name in marked) else True


def uses_marker(name: str, text: str) -> bool:
    """Whether a file's code says ``mark.NAME``; what it has in strings is for inner sessions of pytest."""
    if f"mark.{name}" not in text:
        return False
    used = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute) and node.attr == name)
    return any(isinstance(value, ast.Attribute) and value.attr == "mark" for value in used)


@pytest.hookimpl(trylast=True)  # after the marks of others have been set
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[COLLECTED] = list(items)
    if all("::" in each for each in config.args) or config.getoption("benchmark_only", False):  # asked for
        return
    wanted = [each for each in items if is_wanted(each, config.option.markexpr, config.getoption("nightly_part"))]
    kept = set(wanted)
    config.hook.pytest_deselected(items=[each for each in items if each not in kept])
    items[:] = shuffled(wanted, config.getoption("shuffled"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is imported or collected is garbage: to look for some again and again takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the tests of a file go through their own objects alone, and not through a million of other files'.

    Each watch asks the collector for all objects once, and tests of what is let go collect garbage.
    """
    file = item.nodeid.partition("::")[0]
    if item.config.stash.get(_LATEST, None) != file:
        item.config.stash[_LATEST] = file
        gc.collect()
        gc.freeze()


_LATEST = pytest.StashKey[str]()


def shuffled(items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """The tests, of which those that share a fork follow on one another where their first was, in a random order."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(item.stash.get(TOGETHER, ""), []).append(item)
    firsts = {name: group[0] for name, group in groups.items() if name}
    ordered: list[pytest.Item] = []
    for item in items:
        name = item.stash.get(TOGETHER, "")
        if not name:
            ordered.append(item)
        elif item is firsts[name]:
            ordered += random.Random(f"{seed} {name}").sample(groups[name], len(groups[name]))
    return ordered


def pytest_report_header(config: pytest.Config) -> str:
    return f"tests that share a fork: --shuffled {config.getoption('shuffled')}"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if file := config.getoption("skipped_to"):
        skipped = dict.fromkeys(_named(report.nodeid) for report in terminalreporter.stats.get("skipped", ()))
        file.write_text("".join(f"{name}\n" for name in skipped), encoding="utf-8")
    failed = [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]
    if failed and config.getoption("nightly_part"):
        names = " ".join(dict.fromkeys(shlex.quote(report.nodeid) for report in failed))
        terminalreporter.write_line(f"to repeat what failed: pytest {names}")


def _named(nodeid: str) -> str:
    """A test as another environment has it: where there were no parameters to run it with, there may be some there."""
    return re.sub(r"\[NOTSET\]$", "", nodeid)
