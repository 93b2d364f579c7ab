"""What a change can touch: ``pytest --changed`` runs those tests alone, where CI runs all of them.

    pytest --changed              # what differs from the last commit, new files too
    pytest --changed=main         # what differs from where this branch left main

A test file is run if it imports what changed, itself or through others, or names it in a string, as a module that is
run or replaced and as a file that is read. Checks and their facts are found by their place and imported by few: of them
the examples are run whose check stands on what changed, beside one script for each command (``tests/golden``).
"""

from __future__ import annotations

import ast
import importlib
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("harness", "scripts", "tests")

EVERYTHING = ("pyproject.toml", "constraints.txt", "conftest.py", "tests/conftest.py", "tests/rings.py")
"""A change of what all tests depend on."""

BY_PLACE = ("harness/watch/checks/", "harness/watch/facts/", "harness/watch/run/")
"""Modules that are found by their place, and by the examples of their checks."""

MIRRORED = {
    "harness/compare/causes/": "tests/compare/",
    "harness/repairs/": "tests/repairs/",
    "harness/resume/losses/": "tests/resume/",
    "tests/silenttrain/compare/": "tests/compare/",
    "tests/silenttrain/resume/": "tests/resume/",
    "tests/silenttrain/": "tests/test_silenttrain.py",
}
"""Others that are found by their place, and the tests of them all."""

ALWAYS = ("tests/golden/", "tests/checks/test_", "tests/test_check_pages.py", "tests/test_catalogue.py")
"""What is run for each of those: one script for each command; the facts by hand, the pages and the listings of all."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("rings").addoption(
        "--changed",
        metavar="COMMIT",
        nargs="?",
        const="HEAD",
        help="run only the tests that can see what has changed since COMMIT, by default the last one",
    )


def changed_since(commit: str) -> set[str]:
    """The files that differ from where this branch left the commit, and those that git does not know yet.

    Raises:
        pytest.UsageError: git knows no such commit, or this is no repository.
    """
    try:
        base = _git("merge-base", commit, "HEAD").strip()
        found = _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")
    except subprocess.CalledProcessError as error:
        raise pytest.UsageError(f"--changed={commit}: {error.stderr.strip()}; name a commit that git knows") from error
    return set(found.splitlines())


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@cache
def modules() -> dict[str, str]:
    """By name, the file of each module, relative to the root."""
    found = {}
    for folder in OURS:
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = str(file.relative_to(ROOT))
    return found


@cache
def needed_by(file: str) -> frozenset[str]:
    """The files of the modules that a file imports, or names in a string; not those for types alone.

    A check's examples need what runs them, and their check.
    """
    known, names = modules(), set[str]()
    if file.endswith("corpus.toml") and file.startswith("tests/checks/"):
        *_, family, name, _ = Path(file).parts
        checks = importlib.import_module("harness.catalogue").checks()
        return frozenset(("tests/checks/conftest.py", known[checks[f"{family}::{name}"].__module__]))
    for node in _walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                names.update(alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                names.update((module, *(f"{module}.{alias.name}" for alias in node.names)))
            case ast.Constant(value=str(text)) if text.startswith(OURS):
                names.add(text.rpartition(":")[0] or text)
    with_packages = {name.rsplit(".", number)[0] for name in names for number in range(name.count(".") + 1)}
    return frozenset(known[name] for name in with_packages if name in known)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below but those in ``if TYPE_CHECKING:``."""
    ahead = [node]
    while ahead:
        for child in ast.iter_child_nodes(ahead.pop()):
            match child:
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    pass
                case ast.AST():
                    yield child
                    ahead.append(child)


@cache
def users_of(files: frozenset[str]) -> dict[str, set[str]]:
    """By file, who needs it, of these test files and all that they need."""
    users: dict[str, set[str]] = defaultdict(set)
    ahead, seen = list(files), set[str]()
    while ahead:
        file = ahead.pop()
        if file not in seen:
            seen.add(file)
            for needed in needed_by(file):
                users[needed].add(file)
                ahead.append(needed)
    return dict(users)


def reaching(changed: Collection[str], files: Collection[str]) -> set[str]:
    """Those of the files that need one that changed, themselves or through others.

    What the rest of the package makes of a check's facts is seen by the tests that name those modules.
    """
    users = users_of(frozenset(files))
    found, waiting = set[str](), [(file, file.startswith(BY_PLACE)) for file in changed]
    while waiting:
        file, of_checks = waiting.pop()
        if file not in found:
            found.add(file)
            further = users.get(file, set())
            if of_checks and not file.startswith((*BY_PLACE, "tests/")):
                further = further & set(files)
            waiting += [(each, of_checks) for each in further]
    return found & set(files)


def names_of(file: str) -> frozenset[str]:
    """What a file that is no module is known by: its name and its path, and its folder's where files are listed."""
    path = Path(file)
    folder = path.parts[0] if len(path.parts) > 1 and path.parts[0] != "tests" else file
    return frozenset((path.name, file, str(path.parent), folder)) - {"."}


@cache
def strings_in(file: str) -> frozenset[str]:
    """The strings in a file's code, and in that of the programs in scripts/ which it imports."""
    found = set()
    for each in (file, *(needed for needed in needed_by(file) if needed.startswith("scripts/"))):
        for node in ast.walk(ast.parse((ROOT / each).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


def touched(changed: Collection[str], files: Collection[str]) -> set[str]:
    """Which of the test files are to be run; a folder of a check's examples is its ``corpus.toml``."""
    if any(file in EVERYTHING or file.startswith("constraints/") for file in changed):
        return set(files)
    code = {file for file in changed if file.endswith(".py") and not is_example(file)}
    data = [file for file in changed if file.startswith("harness/") and file not in code]
    found = reaching(code.union(*map(readers, data)), files)
    found |= {each for each in files if each.startswith(tuple(map(_mirrored, changed)))}
    for file in changed:
        if file.startswith("tests/"):
            folders = {str(each) for each in Path(file).parents} - {"tests", "."}
            found |= {each for each in files if str(Path(each).parent) in folders}
        if file not in code:
            found |= {each for each in files if each.endswith(".py") and names_of(file) & strings_in(each)}
    if any(file.startswith(BY_PLACE) for file in code):
        found |= {file for file in files if file.startswith(ALWAYS)}
    return found


def readers(file: str) -> set[str]:
    """The modules of the package that name a file of data, or its folder."""
    path = Path(file)
    names = {path.name, path.parent.name}
    return {each for each in modules().values() if each.startswith("harness/") and names & strings_in(each)}


def _mirrored(file: str) -> str:
    return next((tests for folder, tests in MIRRORED.items() if file.startswith(folder)), "no folder")


def is_example(file: str) -> bool:
    """Whether a file is a script that tests run."""
    return file not in modules().values() or "-" in file


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if commit := config.getoption("changed"):
        changed = changed_since(commit)
        files = {item.nodeid.partition("::")[0] for item in items}
        found = touched(changed, files)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid.partition("::")[0] not in found])
        items[:] = [item for item in items if item.nodeid.partition("::")[0] in found]


def pytest_report_header(config: pytest.Config) -> str | None:
    if commit := config.getoption("changed"):
        return f"changed since {commit}: {', '.join(sorted(changed_since(commit))) or 'nothing, so no test is run'}"
    return None
