"""``[tool.harness]`` of pyproject.toml: which checks are wanted, and of which scripts; and comments in a script."""

from __future__ import annotations

import ast
import difflib
import io
import math
import re
import shlex
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness import catalogue
from harness.errors import CannotTry
from harness.findings import UNUSUAL, Finding, Unusual, lines_at

CHECKS = ("select", "ignore")
KEYS = (*CHECKS, "scripts", "reload", "training")
OF_TRAINING = ("same-as", "vary", "settings", "ignore", "tolerance")
"""What an entry of a training may have beside its name and its script."""

COMMENT = re.compile(r"#\s*harness:\s*ignore\[([^\]]*)\]")


@dataclass(frozen=True)
class WatchOptions:
    """How a script is watched: what ``harness check`` and ``harness describe`` are told besides the script."""

    module: bool = False
    """Whether the script is a module's name, as with ``python -m``."""
    updates: int | None = None
    """The number of updates after which the script ends; None where it ends by itself."""
    full: bool = False
    """Whether each pass over a DataLoader is made to its end; long ones are shortened otherwise."""
    reload: bool = True
    """Whether what the script saved is loaded again."""
    select: tuple[str, ...] = ()
    """The only checks that are run: ids or families; all of them where it is empty."""
    ignore: tuple[str, ...] = ()
    """The checks whose findings do not count."""

    def words(self) -> list[str]:
        """The options as a command line has them."""
        words = [f"--updates={self.updates}"] * (self.updates is not None) + ["--full"] * self.full
        words += ["--no-reload"] * (not self.reload) + ["-m"] * self.module
        return [*words, *(f"--select={each}" for each in self.select), *(f"--ignore={each}" for each in self.ignore)]


DEFAULTS = WatchOptions()


@dataclass(frozen=True)
class Wanted:
    """The checks to run, and those whose findings do not count, both as ids."""

    selected: frozenset[str]
    ignored: frozenset[str]
    unusual: bool = True
    """Whether lines that hardly any correct training has are marked."""


@dataclass(frozen=True)
class Way:
    """Another way to start a training."""

    arguments: tuple[str, ...] = ()
    """Behind its own."""
    processes: int | None = None
    """How many are started; None for the one that the script's own command is."""

    def __str__(self) -> str:
        return shlex.join([*(["--processes", str(self.processes)] if self.processes else []), *self.arguments])


@dataclass(frozen=True)
class Training:
    """A script with the arguments of a small setting, whose behaviour a baseline keeps."""

    name: str
    command: list[str]
    """SCRIPT or -m MODULE, and its arguments."""
    same_as: Sequence[Way] = ()
    """The ways to start it in which it is the same training."""
    vary: bool = False
    """Whether the relations of ``harness vary`` have to hold for it."""
    settings: bool = False
    """Whether its baseline has the table of ``harness vary --settings``."""
    ignore: Sequence[str] = ()
    """Patterns of the facts and numbers that are not compared."""
    tolerance: Mapping[str, float] = field(default_factory=dict)
    """Pattern of facts and numbers to how far apart they may be, as a share of the larger."""


@dataclass(frozen=True)
class Reload:
    """How what a script saved is loaded again when it is over."""

    wanted: bool = True
    loader: str | None = None
    """``module:function`` of the user's own that loads a model from a path."""
    found_in: str | None = None
    """The folder in which that module is found."""


def wanted(script: Path | None, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Wanted:
    """What is asked for on the command line, and in the pyproject.toml next to the script or above it.

    ``select`` takes the place of the file's, ``ignore`` is added to it. Names are ids, former ids or families.

    Raises:
        CannotTry: an unknown check or family, there, in the file, or in a comment of the script.
    """
    file, table = _table(script.resolve().parent if script else Path.cwd())
    settings = {key: _ids(file, key, table) for key in CHECKS}
    chosen = set(select) or settings["select"]
    ignored = {*ignore, *settings["ignore"]}
    selected = catalogue.resolve(chosen - {UNUSUAL}) if chosen else set(catalogue.checks())
    if script is not None:
        for names in _comments(_source(script)).values():
            catalogue.resolve({*names} - {UNUSUAL})
    marked = UNUSUAL not in ignored and (not chosen or UNUSUAL in chosen)
    return Wanted(frozenset(selected), frozenset(catalogue.resolve(ignored - {UNUSUAL})), marked)


def reload(script: Path | None, wanted: bool = True) -> Reload:
    """How ``[tool.harness]`` says that what a script saved is loaded again: ``reload = "module:function"``, or false.

    Raises:
        CannotTry: it says something else.
    """
    file, table = _table(script.resolve().parent if script else Path.cwd())
    given = table.get("reload", True)
    if isinstance(given, bool):
        return Reload(wanted and given)
    module, _, function = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not isinstance(given, str) or not all(part.isidentifier() for part in (*module.split("."), function)):
        raise CannotTry(
            f"{file}: reload of [tool.harness] must name a function; found {given!r}; "
            'write "module:function", which is given a path and returns the model, or false'
        )
    return Reload(wanted, given, str(file.parent))


def scripts() -> tuple[Path, list[list[str]]]:
    """The scripts of ``[tool.harness]``, each with its arguments or as ``-m MODULE``, and the folder to start them in.

    Raises:
        CannotTry: there is no such list, or what it has is no script.
    """
    file, table = _table(Path.cwd())
    listed = table.get("scripts", [])
    if not isinstance(listed, list) or not all(isinstance(each, str) and each.strip() for each in listed):
        raise CannotTry(f"{file}: scripts of [tool.harness] must be a list of scripts; found {listed!r}")
    if not listed:
        raise CannotTry(
            "no SCRIPT is given, and no pyproject.toml here or above names one; name a script, or write scripts = "
            '["train.py"] below [tool.harness]'
        )
    return file.parent, [_command(file, each) for each in listed]


def trainings(folder: Path | None = None) -> tuple[Path, list[Training]]:
    """The trainings of ``[[tool.harness.training]]``, and the folder to start them in.

    Raises:
        CannotTry: an entry lacks its name or its script, or has another key; or two have one name.
    """
    file, table = _table(folder or Path.cwd())
    entries = table.get("training", [])
    if not isinstance(entries, list):
        raise CannotTry(f"{file}: write [[tool.harness.training]] with two brackets: there may be several trainings")
    found: dict[str, Training] = {}
    for entry in entries:
        if not isinstance(entry, dict) or {*entry} - {*OF_TRAINING} != {"name", "script"}:
            raise CannotTry(
                f"{file}: an entry of [[tool.harness.training]] has a name and a script, and may have "
                f"{', '.join(OF_TRAINING)}; found {entry!r}"
            )
        name, script = entry["name"], entry["script"]
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) or name in found:
            raise CannotTry(
                f"{file}: each [[tool.harness.training]] needs a unique name of letters, digits, dots, dashes and "
                f"underscores; found {name!r}"
            )
        if not isinstance(script, str) or not script.strip():
            raise CannotTry(f"{file}: the script of training {name} is SCRIPT with its arguments; found {script!r}")
        ways = entry.get("same-as", [])
        if not isinstance(ways, list) or not all(isinstance(each, str) for each in ways):
            raise CannotTry(f"{file}: same-as of training {name} is a list of arguments; found {ways!r}")
        for key in ("vary", "settings"):
            if not isinstance(entry.get(key, False), bool):
                raise CannotTry(f"{file}: {key} of training {name} is true or false; found {entry[key]!r}")
        command = _command(file, script, f"training {name}")
        found[name] = Training(
            name,
            command,
            [_way(file, each, name) for each in ways],
            entry.get("vary", False),
            entry.get("settings", False),
            _ignored(file, name, entry.get("ignore", [])),
            _tolerated(file, name, entry.get("tolerance", {})),
        )
    return file.parent, list(found.values())


def _ignored(file: Path, name: str, ignore: object) -> list[str]:
    if not isinstance(ignore, list) or not all(isinstance(each, str) and each for each in ignore):
        raise CannotTry(f"{file}: ignore of training {name} is a list of patterns of facts; found {ignore!r}")
    return ignore


def _tolerated(file: Path, name: str, tolerance: object) -> dict[str, float]:
    if not isinstance(tolerance, dict):
        raise CannotTry(f"{file}: tolerance of training {name} is a table of patterns of facts; found {tolerance!r}")
    for pattern, share in tolerance.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < math.inf:
            raise CannotTry(
                f"{file}: tolerance of training {name} for {pattern!r} is a number from 0 on; found {share!r}"
            )
    return {pattern: float(share) for pattern, share in tolerance.items()}


def _way(file: Path, line: str, name: str) -> Way:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CannotTry(f"{file}: same-as of training {name}: {line!r} cannot be read: {error}") from error
    if words[:1] != ["--processes"]:
        return Way(tuple(words))
    if len(words) < 2 or not words[1].isdigit() or int(words[1]) < 2:
        raise CannotTry(f"{file}: same-as of training {name}: --processes takes a number from 2 on; found {line!r}")
    return Way(tuple(words[2:]), int(words[1]))


def _command(file: Path, line: str, of: str = "scripts of [tool.harness]") -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CannotTry(f"{file}: {of}: {line!r} cannot be read: {error}") from error
    if words[0].startswith("-") and (words[0] != "-m" or len(words) < 2):
        raise CannotTry(
            f"{file}: {of}: {line!r} begins with an option; write SCRIPT or -m MODULE first, then its arguments"
        )
    return words


def _table(folder: Path) -> tuple[Path, dict[str, object]]:
    """``[tool.harness]`` of the nearest pyproject.toml that has it, as ruff finds its own; empty where none has."""
    for above in (folder, *folder.parents):
        file = above / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("harness")
        except (OSError, ValueError) as error:
            raise CannotTry(f"{file} cannot be read: {error}") from error
        if table is not None:
            _check_keys(file, table)
            return file, table
    return folder / "pyproject.toml", {}


def _check_keys(file: Path, table: object) -> None:
    if not isinstance(table, dict):
        raise CannotTry(f"{file}: tool.harness must be a table; write [tool.harness] with {', '.join(KEYS)}")
    for key in table:
        if key not in KEYS:
            close = difflib.get_close_matches(key, KEYS, n=1)
            meant = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(KEYS)}"
            raise CannotTry(f"{file}: [tool.harness] has an unknown key {key!r}; {meant}")


def _ids(file: Path, key: str, table: dict[str, object]) -> set[str]:
    names = table.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CannotTry(f"{file}: {key} of [tool.harness] must be a list of checks; found {names!r}")
    known = catalogue.checks()  # if they cannot be imported, it is no fault of the file
    try:
        catalogue.resolve({*names} - {UNUSUAL}, known)
    except CannotTry as error:
        raise CannotTry(f"{file}: {key} of [tool.harness]: {error}") from error
    return set(names)


def is_ignored_by_comment(finding: Finding) -> bool:
    """Whether the statement that the finding is about has a comment ``# harness: ignore[ID, …]`` that names it."""
    names = ignored_at(finding.where)
    try:
        return finding.check in catalogue.resolve({*names} - {UNUSUAL})
    except CannotTry:  # in a module that the script imports
        return finding.check in names


def wants_unusual(script: Path | None, options: WatchOptions) -> bool:
    """Whether lines that hardly any correct training has are marked."""
    return wanted(script, options.select, options.ignore).unusual


def unless_ignored(marks: Iterable[Unusual]) -> Iterator[Unusual]:
    """The marks without those that a comment of their statement ignores."""
    yield from (mark for mark in marks if mark.where is None or UNUSUAL not in ignored_at(mark.where))


def ignored_at(where: str | None) -> list[str]:
    """What a comment of the statement at a place ignores."""
    lines, line = lines_at(where)
    source = "".join(each if each.endswith("\n") else f"{each}\n" for each in lines)
    comments = _comments(source)
    if not comments:
        return []
    return [name for each in _lines_of_statement(source, line) for name in comments.get(each, ())]


def _source(script: Path) -> str:
    """What a script says; nothing where it is no text."""
    with suppress(OSError, SyntaxError, UnicodeDecodeError), tokenize.open(script) as opened:
        return opened.read()
    return ""


@cache
def _comments(source: str) -> dict[int, list[str]]:
    """What the comments of a file or of a notebook's cell ignore, by line."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return {}
    found = {token.start[0]: COMMENT.search(token.string) for token in tokens if token.type == tokenize.COMMENT}
    return {line: [name.strip() for name in match[1].split(",")] for line, match in found.items() if match}


@cache
def _lines_of_statement(source: str, line: int) -> range:
    """The lines of the smallest statement without a body that the line is in."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return range(line, line + 1)
    ranges = [
        range(each.lineno, (each.end_lineno or each.lineno) + 1)
        for each in ast.walk(tree)
        if isinstance(each, ast.stmt) and not hasattr(each, "body")
    ]
    return min((each for each in ranges if line in each), key=len, default=range(line, line + 1))
