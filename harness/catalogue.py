"""The catalogue: every check of ``harness check``, and every loss of ``harness resume``, by its id.

A check registers itself when its class is made (:class:`harness.watch.check.Check`); what can be listed, explained,
selected and ignored, the pages in docs/checks, the hints in the terminal and the tests all come from here. Importing
this module imports no check: :func:`checks` does.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from harness.errors import CannotTry
from harness.findings import Severity

PACKAGE = "harness.watch.checks"
RESUME = "harness.resume.losses"

SECTIONS = {
    "Why is this a bug?": "why",
    "What to do": "remedy",
    "When it is right": "right_when",
    "References": "references",
}
"""The sections of a check's docstring, by what they are called in ``harness explain --json``."""


class Page:
    """What a check's docstring says: its statement, and why, what to do, when it is right all the same, references.

    Raises:
        TypeError: the docstring has another section, or lacks one of those that every check has.
    """

    statement: str
    why: str
    remedy: str
    right_when: str
    references: list[str]

    def __init__(self, name: str, docstring: str) -> None:
        head, *parts = re.split(r"^## (.+)\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
        sections = dict(zip(map(str.strip, parts[::2]), parts[1::2], strict=True))
        if unknown := set(sections) - set(SECTIONS):
            raise TypeError(f"{name}: unknown section {unknown.pop()!r}; the sections are {', '.join(SECTIONS)}")
        if missing := [section for section in SECTIONS if section not in sections and section != "References"]:
            raise TypeError(f"{name}: its docstring has no section {missing[0]!r}")
        self.statement = " ".join(head.split())
        self.why, self.remedy, self.right_when = (
            sections[name].strip() for name in ("Why is this a bug?", "What to do", "When it is right")
        )
        lines = sections.get("References", "").splitlines()
        self.references = [line.strip().removeprefix("- ") for line in lines if line.strip()]

    @property
    def hint(self) -> str:
        """The first paragraph of what to do, for the terminal."""
        return " ".join(self.remedy.partition("\n\n")[0].split())


class CatalogueEntry(Protocol):
    """What the catalogue knows of the class of a check (:class:`harness.watch.check.Check`)."""

    id: ClassVar[str]
    severity: ClassVar[Severity]
    formerly: ClassVar[tuple[str, ...]]
    explains: ClassVar[tuple[str, ...]]
    page: ClassVar[Page]


_registered: dict[str, type[CatalogueEntry]] = {}


def register(check: type[CatalogueEntry]) -> None:
    """Add a check that has just been made.

    Raises:
        TypeError: another check has its id, now or formerly.
    """
    for name in (check.id, *check.formerly):
        known = _names().get(name)
        if known is not None and known.__qualname__ != check.__qualname__:
            raise TypeError(f"{check.__qualname__}: {name} is the id of {known.__qualname__} already")
    _registered[check.id] = check


def _names() -> dict[str, type[CatalogueEntry]]:
    """Every check by its id and by those that it had before."""
    return {name: check for check in _registered.values() for name in (check.id, *check.formerly)}


@cache
def _load(name: str) -> None:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        importlib.import_module(module.name)


def checks() -> dict[str, type[CatalogueEntry]]:
    """Every check of ``harness check`` by its id, in the order of the ids."""
    return _of_package(PACKAGE)


def losses() -> dict[str, type[CatalogueEntry]]:
    """Every loss of ``harness resume`` by its id, in the order of the ids."""
    return _of_package(RESUME)


def _of_package(package: str) -> dict[str, type[CatalogueEntry]]:
    _load(package)
    return {name: _registered[name] for name in sorted(_registered) if _registered[name].__module__.startswith(package)}


def names() -> list[str]:
    """The families and ids by their files, without importing them: for a shell's completion."""
    root = Path(__file__).parent / "watch" / "checks"
    files = sorted(file.relative_to(root) for file in root.glob("*/*.py") if file.stem != "__init__")
    ids = [f"{file.parent}::{file.stem}".replace("_", "-") for file in files]
    return sorted({str(file.parent) for file in files}) + ids


def families() -> list[str]:
    return sorted({check.partition("::")[0] for check in checks()})


def resolve(names: Iterable[str], known: Mapping[str, type[CatalogueEntry]] | None = None) -> set[str]:
    """The ids that are meant, of all checks or of ``known``: a name is an id, one that a check had before, or a family.

    Raises:
        CannotTry: there is no check and no family of that name.
    """
    found = set()
    known = checks() if known is None else known
    former = {name: check for name, check in _names().items() if check.id in known}
    families = sorted({check.partition("::")[0] for check in known})
    for name in names:
        family = name.removesuffix("::*").removesuffix("::")
        if name in former:
            found.add(former[name].id)
        elif family in families:
            found |= {check for check in known if check.startswith(f"{family}::")}
        else:
            close = difflib.get_close_matches(name, [*former, *families], n=1, cutoff=0.4)
            meant = f"; did you mean {former[close[0]].id if close[0] in former else close[0]}?" if close else ""
            raise CannotTry(f"there is no check {name}{meant or '; harness explain lists them'}")
    return found


def explain(names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The pages of the checks and losses that are named, of all without a name, as ``harness explain --json`` has them.

    Raises:
        CannotTry: there is no check and no family of that name.
    """
    names = list(names)
    known = checks() | losses()
    wanted = resolve(names, known) if names else set(known)
    return [_explained(known[name]) for name in sorted(wanted)]


@dataclass(frozen=True)
class Explained:
    """A check as ``harness explain --json`` has it."""

    id: str
    formerly: list[str]
    severity: Severity
    statement: str
    why: str
    remedy: str
    right_when: str
    references: list[str]


def _explained(check: type[CatalogueEntry]) -> dict[str, Any]:
    page, severity = check.page, check.severity
    said = (page.statement, page.why, page.remedy, page.right_when, page.references)
    return asdict(Explained(check.id, list(check.formerly), severity, *said))
